"""What a program works out and never reads: values, elements of what it goes over, layers, helpers that act on training."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.objects import KINDS
from wheeltapper.program.play.library import MOVES
from wheeltapper.program.play.slopes import RISING
from wheeltapper.program.play.value import CARRIES, GRAPH_ENDS
from wheeltapper.program.program import Class, callee, dotted_name
from wheeltapper.program.reading import Code
from wheeltapper.program.vocabulary import CONFIG_NAMES

READS_ALL = {"locals", "vars", "globals", "exec", "eval"}  # any name may be read by these
LIBRARIES = ("torch.", "numpy.", "math.", "scipy.", "torchvision.", "sklearn.model_selection.", "itertools.")
ACTS = re.compile(r"seed|^set_|^init|save|load|backends|deterministic|cuda|distributed|register|threads|hook|print|subplots|figure")
MAKES = set(KINDS) | {"Subset", "TensorDataset", "ConcatDataset", "deepcopy", "list", "sorted", "Random", "default_rng", "Generator", "RandomState"}
METHODS = CARRIES | GRAPH_ENDS | RISING | MOVES | {
    "masked_fill", "chunk", "split", "unbind", "gather", "index_select", "ne", "eq", "lt", "gt", "bool", "int", "long", "state_dict",
    "copy", "parameters", "named_parameters", "std", "var", "norm", "normalize", "cumsum", "argsort", "triu", "tril", "logical_not", "abs",
}  # fmt: skip
CUTS = {"chunk", "split", "unbind", "tensor_split"}
OWN_EFFECTS = re.compile(r"\b(backward|step|print|save|write|append|register|fit|setattr)\b")
ACTS_ON_TRAINING = re.compile(r"requires_grad|\.detach\(|load_state_dict|param_groups|set_epoch|all_reduce|\.zero_grad\(|clip_grad")
PLAIN_BASES = {"Module", "object", "Dataset", "IterableDataset"}


@dataclass(frozen=True, eq=False)
class Unused:
    name: str
    node: ast.AST  # where it is made
    ends: tuple[ast.AST, ...] = ()  # what is made without it: the results of its function


def unused_values(code: Code) -> Iterator[Unused]:
    """`name = something computed`, in a function that runs or in the entry itself, that nothing reads."""
    for body in _bodies(code):
        nodes = list(ast.walk(body))
        read = _read(code, body, nodes)
        if read is None:
            continue
        ends = tuple(n for n in nodes if isinstance(n, ast.Return) and n.value is not None)
        for node in nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not _stands_in(code, node, body):
                continue
            for name, value in _bound(node.targets[0], node.value):
                if name not in read and not name.startswith("_") and _computes(code, value):
                    yield Unused(name, node, (*_instead(node, value, nodes), *ends))


def _instead(node: ast.Assign, value: ast.expr, nodes: list[ast.AST]) -> list[ast.AST]:
    """Where what the value was made of is read again later: there it may have been meant. The rarest name first."""
    inner = {id(n) for n in ast.walk(node)}
    names = {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}
    later: dict[str, list[ast.AST]] = {}
    for one in nodes:
        if isinstance(one, ast.Name) and one.id in names and id(one) not in inner and one.lineno > node.lineno:
            later.setdefault(one.id, []).append(one)
    return [reads[0] for reads in sorted(later.values(), key=len)[:1]]


def unused_elements(code: Code) -> Iterator[Unused]:
    """A name of `for a, b in zip(...)`, or the start of a slice in `for s in range(0, n, size)`, that the loop never reads."""
    for body in _bodies(code):
        nodes = list(ast.walk(body))
        read = _read(code, body, nodes)
        if read is None:
            continue
        for node in nodes:
            if not isinstance(node, ast.For | ast.comprehension) or not isinstance(node.iter, ast.Call):
                continue
            told = _elements(node.target, node.iter)
            for name in told:
                if name not in read and not name.startswith("_"):
                    yield Unused(name, node.iter)


def _elements(target: ast.expr, over: ast.Call) -> list[str]:
    name = callee(over)
    if name == "enumerate" and over.args and isinstance(over.args[0], ast.Call) and isinstance(target, ast.Tuple):
        return _elements(target.elts[-1], over.args[0])
    if name == "zip" and isinstance(target, ast.Tuple):
        return [e.id for e in target.elts if isinstance(e, ast.Name)]
    stepped = name == "range" and len(over.args) == 3 and not isinstance(over.args[2], ast.Constant)
    return [target.id] if stepped and isinstance(target, ast.Name) else []


def unused_layers(code: Code) -> Iterator[Unused]:
    """`self.layer = ...` of a network of the program that no method of any class reads."""
    read = {n.attr for s in code.program.scripts for n in ast.walk(s.tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    texts = {n.value for s in code.program.scripts for n in ast.walk(s.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    made = {v.name for v in code.story.calls if v.origin == "?" + v.name}
    for cls in code.program.classes.values():
        if cls.name not in made or not set(cls.bases) <= PLAIN_BASES or _iterates_itself(cls):
            continue
        for node in ast.walk(cls.node):
            match node:
                case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value) if (
                    name not in read and name not in texts and (_computes(code, value) or _is_layer(code, value))
                ):
                    yield Unused(name, node)


def _iterates_itself(cls: Class) -> bool:
    """A network that goes over its own parts uses them all."""
    return bool(re.search(r"self\.(children|modules|named_children|named_modules|_modules|__dict__)|getattr\(self", ast.unparse(cls.node)))


def unused_helpers(code: Code) -> Iterator[Unused]:
    """A function of the program that acts on training (freezes, detaches, restores, reduces) and is never called."""
    texts = [n.value for s in code.program.scripts for n in ast.walk(s.tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    named: set[str] = set(texts)
    for script in code.program.scripts:
        for node in ast.walk(script.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                named.add(node.id)
            elif isinstance(node, ast.Attribute):
                named.add(node.attr)
    for name, funcs in code.program.functions.items():
        for func in funcs:
            if name in named or name.startswith("_") or isinstance(func.node, ast.Lambda) or func.node.decorator_list:
                continue
            owner = code.program.classes.get(func.owner or "")
            hooked = owner is not None and not set(owner.bases) <= PLAIN_BASES
            if name in ("forward", "main") or hooked or not ACTS_ON_TRAINING.search(ast.unparse(func.node)):
                continue
            yield Unused(name, func.node)


# -- what is read ------------------------------------------------------------------------------------------------


def _bodies(code: Code) -> list[ast.AST]:
    entered = code.story.player.entered
    found: list[ast.AST] = [code.program.entry.tree]
    found += [f.node for funcs in code.program.functions.values() for f in funcs if f.scope in entered]
    return [b for b in found if not isinstance(b, ast.Lambda)]


def _read(code: Code, body: ast.AST, nodes: list[ast.AST]) -> set[str] | None:
    """Every name that is read where this body's names can be; None if that cannot be told."""
    read = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Store) and not _for_its_shape(code, n)}
    read |= {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}
    if read & READS_ALL:
        return None
    if isinstance(body, ast.Module):
        for script in code.program.scripts:
            for node in ast.walk(script.tree) if script is not code.program.entry else ():
                if isinstance(node, ast.ImportFrom):
                    read |= {a.name for a in node.names}
                elif isinstance(node, ast.Attribute):
                    read.add(node.attr)
    return read | {name for n in nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}


def _for_its_shape(code: Code, node: ast.Name) -> bool:
    """`zeros_like(x)`: nothing of what x holds is looked at."""
    up = code.program.parent(node)
    return isinstance(up, ast.Call) and node in up.args[:1] and callee(up) in ("zeros_like", "ones_like")


def _stands_in(code: Code, node: ast.AST, body: ast.AST) -> bool:
    """Whether a statement belongs to this body itself: not to a function inside it, nor to a class (whose fields others read)."""
    up = code.program.parent(node)
    while up is not None and up is not body:
        if isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            return False
        up = code.program.parent(up)
    return True


def _bound(target: ast.expr, value: ast.expr) -> list[tuple[str, ast.expr]]:
    """The names an assignment gives, each with its own expression. One of several results of a call is left open."""
    if isinstance(target, ast.Name):
        return [(target.id, value)]
    if not isinstance(target, ast.Tuple):
        return []
    if isinstance(value, ast.IfExp):
        return _bound(target, value.body)
    if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
        return [pair for t, v in zip(target.elts, value.elts, strict=True) for pair in _bound(t, v)]
    cut = isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr in CUTS
    return [(e.id, value) for e in target.elts if isinstance(e, ast.Name)] if cut else []


# -- what computes -----------------------------------------------------------------------------------------------


def _computes(code: Code, value: ast.expr) -> bool:
    """Whether an expression only works something out, of something that is not written down in it."""
    if isinstance(value, ast.Constant | ast.Name | ast.Lambda | ast.JoinedStr | ast.Await | ast.Yield | ast.BoolOp):
        return False
    if isinstance(value, ast.Attribute):
        return not CONFIG_NAMES.match(dotted_name(value).split(".")[0]) and not dotted_name(value).startswith("self")
    inner = list(ast.walk(value))
    calls = [n for n in inner if isinstance(n, ast.Call)]
    if not calls and not any(isinstance(n, ast.Name) for n in inner):
        return False
    return all(_is_pure(code, c) for c in calls)


def _is_pure(code: Code, call: ast.Call) -> bool:
    name = callee(call)
    if name in ("len", "range", "int", "float", "max", "min", "sum", "zip", "enumerate", "abs", "round", "set", "tuple", "next", "iter"):
        return True
    origin = code.program.origin(call.func)
    if origin.startswith(LIBRARIES) or (name in MAKES and not isinstance(call.func, ast.Attribute)):
        return not ACTS.search(origin.split(".", 1)[-1])
    if name in MAKES:
        return True
    if call in _applications(code):
        return True
    funcs, unseen = code.program.targets(call)
    if funcs and not unseen:
        made = code.program.class_called(call)
        if made is not None:
            return bool(set(made.bases) & {"Dataset", "IterableDataset", "Module"})
        return not any(OWN_EFFECTS.search(ast.unparse(f.node)) for f in funcs)
    return isinstance(call.func, ast.Attribute) and name in METHODS


def _is_layer(code: Code, value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and code.program.origin(value.func).startswith(("torch.nn.", "nn."))


def _applications(code: Code) -> set[ast.AST | None]:
    return {c.node for c in code.story.calls if c.op == "net"}
