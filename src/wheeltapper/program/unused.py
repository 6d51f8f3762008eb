"""What a program works out and never reads, where something of the same kind is used in its place."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from wheeltapper.program.play.value import made_of
from wheeltapper.program.program import Func, callee
from wheeltapper.program.reading import Code
from wheeltapper.program.unread import is_commented_out

Scope = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef
LOOKS_UP_NAMES = {"locals", "vars", "globals", "exec", "eval"}  # any name may be read by these
DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
# Calls that are made for what they do, not for what they return.
ACTS = {
    "backward", "step", "append", "extend", "print", "save", "write", "add", "update", "fit", "train", "run", "log", "seed", "manual_seed",
    "zero_grad", "load_state_dict", "copy_", "add_", "mul_", "lerp_", "requires_grad_", "eval", "put", "push", "store", "next", "pop",
    "read", "readline", "get", "input", "open", "popleft", "setattr", "register", "watch", "init", "reset", "train_on_batch", "getLogger",
    "get_logger", "clip_grad_norm_", "clip_grad_norm", "pop_state", "send", "start", "set_seed", "compile", "fit_transform", "partial_fit",
}  # fmt: skip
SHOWN = {  # numbers for people and for the machine, not for the training
    "time", "perf_counter", "now", "item", "strftime", "len", "size", "format", "join", "numel", "get_rank", "device_count", "monotonic",
    "getenv", "int", "exists", "get_world_size", "cuda", "is_available", "str", "round", "environ", "current_device", "type", "zeros", "empty",
    "memory_allocated", "max_memory_allocated", "decode", "figure", "subplots", "zeros_like", "device", "summary", "Event", "makedirs",
}  # fmt: skip
MASKS = {"eye", "tril", "triu", "masked_fill", "ne", "eq", "lt", "gt", "le", "ge", "logical_not", "logical_and", "isin", "isnan", "sequence_mask"}
STATES = {"state_dict", "get_state", "get_rng_state"}
HALVES = {"chunk", "split", "tensor_split", "unbind", "hsplit", "vsplit", "array_split"}
# The same data in another form: what it was made of can stand in its place.
FORMS = {
    "detach", "clone", "reshape", "view", "permute", "transpose", "flatten", "normalize", "softmax", "log_softmax", "sigmoid", "tanh", "float",
    "argmax", "roll", "flip", "dropout", "pad", "clamp", "clip", "cumsum", "gather", "index_select", "shuffle", "permutation", "where",
    "mean", "std", "standardize", "rearrange", "exp", "log", "squeeze", "unsqueeze", "add_noise", "transform", "augment",
}  # fmt: skip
MAKERS = {
    "DataLoader", "Subset", "TensorDataset", "ConcatDataset", "iter", "default_rng", "RandomState", "Generator", "tensor", "as_tensor",
    "from_numpy", "array", "asarray", "stack", "concatenate", "cat",
}  # fmt: skip
FOR_PEOPLE = {"acc", "accuracy", "metric", "metrics", "score", "scores", "auc", "f1", "precision", "recall", "ppl", "perplexity", "norm"}
ANEW = {"iter", "default_rng", "RandomState", "Generator"}  # made again later: that one is used
DATASETS = {"Subset", "TensorDataset", "ConcatDataset"}


@dataclass(frozen=True, eq=False)
class Unused:
    """One name that is set and not read again."""

    name: str
    node: ast.AST  # where it is set
    instead: tuple[ast.AST, ...] = ()  # what is used in its place


@dataclass(eq=False)
class Body:
    """A function that was played, or the entry itself, with the names that are read in it."""

    code: Code
    scope: Scope

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.scope))

    @cached_property
    def reads(self) -> dict[str, list[ast.Name]]:
        out: dict[str, list[ast.Name]] = {}
        for node in self.nodes:
            if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
                out.setdefault(node.id, []).append(node)
        return out

    @cached_property
    def shared(self) -> set[str]:
        """Names that are read elsewhere, or changed in place."""
        out = {name for n in self.nodes if isinstance(n, ast.Global | ast.Nonlocal) for name in n.names}
        return out | {n.target.id for n in self.nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}

    @cached_property
    def assigns(self) -> list[ast.Assign]:
        return [n for n in _own(self.scope) if isinstance(n, ast.Assign) and len(n.targets) == 1]

    def is_unread(self, name: str) -> bool:
        return not name.startswith("_") and name not in self.reads and name not in self.shared

    def later(self, name: str, node: ast.AST) -> list[ast.Name]:
        """Where a name is read after a statement."""
        end = getattr(node, "end_lineno", 0) or 0
        return [n for n in self.reads.get(name, []) if n.lineno > end]


def bodies_of(code: Code) -> Iterator[Body]:
    scopes: list[Scope] = [code.program.entry.tree] if len(code.program.scripts) == 1 else []
    for funcs in code.program.functions.values():
        scopes += [f.node for f in funcs if f.scope in code.story.player.entered and not isinstance(f.node, ast.Lambda)]
    for scope in scopes:
        body = Body(code, scope)
        if not body.reads.keys() & LOOKS_UP_NAMES:
            yield body


# -- positions of loops ------------------------------------------------------------------------------------------


def idle_positions(body: Body) -> Iterator[Unused]:
    """`for s in range(0, n, size)` whose s nothing reads: every turn takes the same part."""
    for node in body.nodes:
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or not isinstance(node.target, ast.Name):
            continue
        stepped = callee(node.iter) == "range" and len(node.iter.args) == 3
        if stepped and not isinstance(node.iter.args[2], ast.Constant | ast.UnaryOp) and body.is_unread(node.target.id):
            yield Unused(node.target.id, node, tuple(node.body[:1]))


def idle_elements(body: Body) -> Iterator[Unused]:
    """One of `for a, b in zip(...)` that is not read, where the two are parameters, or layers with what they are given."""
    func = body.code.program.scopes.get(_scope_name(body))
    cls = body.code.program.classes.get(func.owner or "") if func is not None else None
    inside = cls is not None and body.code.story.player.is_network_class(cls)
    for node in body.nodes:
        if not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or callee(node.iter) != "zip":
            continue
        names = [e.id for e in node.target.elts if isinstance(e, ast.Name)] if isinstance(node.target, ast.Tuple) else []
        unread = [n for n in names if body.is_unread(n)]
        parameters = sum(isinstance(a, ast.Call) and callee(a) in ("parameters", "buffers") for a in node.iter.args) > 1
        if len(unread) == 1 and len(names) > 1 and (inside or parameters):
            yield Unused(unread[0], node.iter, tuple(node.body[:1]))


def _scope_name(body: Body) -> str:
    func = body.code.program.func_of.get(body.scope.body[0]) if not isinstance(body.scope, ast.Module) and body.scope.body else None
    return func.scope if func is not None else ""


# -- values ------------------------------------------------------------------------------------------------------


def unused_values(body: Body) -> Iterator[Unused]:
    """Values of a telling kind that nothing reads."""
    for node in body.assigns:
        target = node.targets[0]
        for name, value, whole in _set_by(target, node.value):
            if not body.is_unread(name) or _is_for_people(name) or is_commented_out(body.code, name, node) or _is_shown(value):
                continue
            found = _tells(body, node, name, value) if whole else _tells_of_several(body, node, name, value)
            if found is not None:
                yield Unused(name, node, tuple(found))


def _tells(body: Body, node: ast.Assign, name: str, value: ast.expr) -> list[ast.AST] | None:
    """What is used in the place of a value that is made alone; None if it tells nothing."""
    if not _computes(body.code, value):
        return None
    calls = {callee(n) for n in ast.walk(value) if isinstance(n, ast.Call)}
    kept = calls & {"clone", "deepcopy", "copy"} and calls & {"parameters", "named_parameters", "state_dict"}
    if kept or calls & STATES or _is_output(body, value) or _is_mask(name, value, calls):
        return _sources(body, node, value)
    made = _sources(body, node, value) if _is_form(body.code, value) else []
    return made or _beside(body, node, name, value) or _twins(body, node, value) or None


def _tells_of_several(body: Body, node: ast.Assign, name: str, value: ast.expr) -> list[ast.AST] | None:
    """One of several results of a call: a half, an output of a network beside marked ones, a pair of which neither is read."""
    if not isinstance(value, ast.Call):
        return None
    beside = [n for n in _names(node.targets[0]) if n != name]
    used = [r for n in beside for r in body.later(n, node)]
    if callee(value) in HALVES and "random" not in ast.unparse(value.func) and used:
        return list(used[:4])
    marked = any(n.startswith("_") for n in beside)
    if (marked or _whole_pair(body, node, name)) and _is_output(body, value):
        return list(used[:4])
    ours = bool(body.code.program.targets(value)[0]) and callee(value) not in ACTS
    if ours and _whole_pair(body, node, name):
        return list(used[:4])
    return None


def _is_shown(value: ast.expr) -> bool:
    nodes = list(ast.walk(value))
    odd = any(isinstance(n, ast.JoinedStr | ast.Await | ast.Yield | ast.Lambda) for n in nodes)
    return odd or any(callee(c) in SHOWN for c in _outer_calls(value))


def _is_for_people(name: str) -> bool:
    return any(word in FOR_PEOPLE for word in name.lower().split("_"))


def _outer_calls(value: ast.expr) -> Iterator[ast.Call]:
    """The calls that a value is the result of, through methods and arithmetic; not those of their arguments."""
    if isinstance(value, ast.Call):
        yield value
        if isinstance(value.func, ast.Attribute):
            yield from _outer_calls(value.func.value)
    elif isinstance(value, ast.BinOp):
        yield from (*_outer_calls(value.left), *_outer_calls(value.right))
    elif isinstance(value, ast.UnaryOp):
        yield from _outer_calls(value.operand)
    elif isinstance(value, ast.Subscript | ast.Attribute):
        yield from _outer_calls(value.value)


def _is_output(body: Body, value: ast.expr) -> bool:
    """A network's answer, in a function where answers are compared with something."""
    story = body.code.story
    inner = set(ast.walk(value))
    if not any(c.op == "net" and c.node in inner for c in story.calls):
        return False
    compared = {n for loss in story.losses for v in made_of(loss) if (n := v.node) is not None}
    compared |= {c.node for c in story.applications if c.order in story.scored and c.node is not None}
    return any(n in compared for n in body.nodes)


def _is_mask(name: str, value: ast.expr, calls: set[str]) -> bool:
    if isinstance(value, ast.Compare):
        return not any(isinstance(op, ast.Is | ast.IsNot | ast.In | ast.NotIn) for op in value.ops) and _has_tensor(value)
    return bool(calls & MASKS) or (bool(calls) and "mask" in name and not isinstance(value, ast.Subscript | ast.Attribute))


def _has_tensor(value: ast.Compare) -> bool:
    """`(target != pad)`, `rand(...) < p`: not `epoch > 3`, which is known to be one number only where it is used."""
    sides = [value.left, *value.comparators]
    return any(isinstance(n, ast.Call | ast.Subscript) for side in sides for n in ast.walk(side)) or any(
        (isinstance(s, ast.Attribute) and "pad" in s.attr) or (isinstance(s, ast.Name) and "pad" in s.id.lower()) for s in sides
    )


def _is_form(code: Code, value: ast.expr) -> bool:
    """Another form of one thing: a method or a function without effects on it, a part of it, a step of arithmetic."""
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Slice | ast.Tuple)
    if isinstance(value, ast.Call):
        own = [f for f in code.program.targets(value)[0] if f.owner is None]
        return callee(value) in FORMS or (bool(own) and code.program.class_called(value) is None)
    return False


def _sources(body: Body, node: ast.Assign, value: ast.expr) -> list[ast.AST]:
    """Where what the value was made of is read again later: there it may have been meant. The rarest name first."""
    first = value
    while isinstance(first, ast.Subscript | ast.Attribute | ast.Call):
        inner = first.func if isinstance(first, ast.Call) else first.value
        if isinstance(first, ast.Call) and (isinstance(inner, ast.Name) or body.code.program.origin(inner).split(".")[0] in body.code.program.imported.get(body.code.program.script_of[node].name, {}).values()):
            break
        first = inner
    names = {n.id for n in ast.walk(first if isinstance(first, ast.Name) else value) if isinstance(n, ast.Name)}
    found = [reads for name in names if (reads := [r for r in body.later(name, node) if _is_whole(body.code, r)])]
    return [one for reads in sorted(found, key=len)[:2] for one in reads[:2]]


def _is_whole(code: Code, read: ast.Name) -> bool:
    """Read for itself: not for its shape, not as a module or a function."""
    up = code.program.parent(read)
    if isinstance(up, ast.Attribute):
        return up.attr not in ("shape", "size", "device", "dtype", "dim", "ndim") and read.id not in code.program.imported.get(code.program.script_of[read].name, {})
    return not (isinstance(up, ast.Call) and (up.func is read or callee(up) in ("len", "print", "isinstance")))


def _beside(body: Body, node: ast.Assign, name: str, value: ast.expr) -> list[ast.AST]:
    """`train, val = f(a), f(b)` of which only one is read."""
    pairs = list(_set_by(node.targets[0], node.value))
    like = [n for n, v, whole in pairs if whole and n != name and isinstance(v, ast.Call) and isinstance(value, ast.Call) and callee(v) == callee(value)]
    return [r for n in like for r in body.later(n, node)[:3]]


def _twins(body: Body, node: ast.Assign, value: ast.expr) -> list[ast.AST]:
    """Values that the same maker made beside it, and that are used more than once: one of the uses may be its."""
    if not isinstance(value, ast.Call) or callee(value) not in MAKERS:
        return []
    again = [n for n in body.nodes if isinstance(n, ast.Call) and n is not value and callee(n) == callee(value) and n.lineno > node.lineno]
    if callee(value) in ANEW and again:
        return list(again[:2])
    out: list[ast.AST] = []
    for other in body.assigns:
        for name, made, whole in _set_by(other.targets[0], other.value):
            same = whole and isinstance(made, ast.Call) and made is not value and callee(made) == callee(value)
            reads = body.reads.get(name, [])
            if same and abs(other.lineno - node.lineno) <= 6 and len(reads) > (callee(value) not in DATASETS):
                out += reads[-2:]
    return out


# -- small questions ---------------------------------------------------------------------------------------------


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if not isinstance(child, DEFINES):
            yield child
            yield from _own(child)


def _set_by(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr, bool]]:
    """The names an assignment sets, each with what it is set to, and whether that is its own."""
    if isinstance(target, ast.Name):
        yield target.id, value, True
    elif isinstance(target, ast.Tuple):
        several = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for place, part in enumerate(target.elts):
            for name, one, whole in _set_by(part, several[place] if several else value):
                yield name, one, whole and several is not None


def _names(target: ast.expr) -> list[str]:
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _whole_pair(body: Body, node: ast.Assign, name: str) -> bool:
    """`first, (x, y) = f()` of which neither x nor y is read."""
    target = node.targets[0]
    for part in target.elts if isinstance(target, ast.Tuple) else ():
        names = _names(part)
        if isinstance(part, ast.Tuple) and name in names and all(n not in body.reads for n in names):
            return True
    return False


def _computes(code: Code, value: ast.expr) -> bool:
    """Whether an expression computes something, and does nothing else."""
    if isinstance(value, ast.Constant | ast.Name | ast.BoolOp):
        return False
    if not any(isinstance(n, ast.Name) for n in ast.walk(value)):
        return False
    return all(_is_pure(code, n) for n in ast.walk(value) if isinstance(n, ast.Call))


def _is_pure(code: Code, call: ast.Call) -> bool:
    name = callee(call)
    if name in ACTS or not name:
        return False
    funcs, outside = code.program.targets(call)
    if funcs:
        return all(_has_no_effect(f) for f in funcs)
    return outside and (name in MAKERS or not name[:1].isupper())


def _has_no_effect(func: Func) -> bool:
    for node in ast.walk(func.node):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            root: ast.expr = node
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if isinstance(node, ast.Attribute) or (isinstance(root, ast.Name) and root.id in func.params):
                return False
        if isinstance(node, ast.Call) and callee(node) in ACTS - {"append", "extend", "get", "next", "eval", "add", "pop"}:
            return False
    return True
