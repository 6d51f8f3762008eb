"""One script taken apart once: its functions and classes, and where every name is read and written.

Several programs of a repository share most of their scripts. What can be said about a script alone is said here,
and `index.program_of` only puts it together.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field

from wheeltapper.program import vocabulary as words
from wheeltapper.program.program import Class, Func, Function, Program, Rest, callee, constant_text, dotted_name
from wheeltapper.program.scripts import Script, children

DOTTED = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$")
LIBRARIES = {
    "torch",
    "torchvision",
    "numpy",
    "transformers",
    "timm",
    "math",
    "os",
    "sys",
    "pytorch_lightning",
    "lightning",
}
DYNAMIC = re.compile(r"getattr\(|hasattr\(\w+, [a-z_]+\)|\.get\([a-z_]+[,)]|\[[a-z_]+\]")
LOOKS_UP = {"getattr", "hasattr", "split", "isinstance", "get", "eval"}
OF_CONFIG = "@"  # marks a name that was only read as a field of a configuration
NAMESPACES = {"globals", "locals", "vars", "__dict__", "modules"}


@dataclass
class Notes:
    """What one function (or the top of a script) does with names, in the order it is written."""

    reads: list[tuple[Rest, ast.expr]] = field(default_factory=list)
    writes: list[tuple[Rest, ast.expr]] = field(default_factory=list)
    opaque: list[Rest] = field(default_factory=list)
    calls: list[tuple[str, ast.Call]] = field(default_factory=list)
    mentions: set[str] = field(default_factory=set)
    nodes: list[ast.AST] = field(default_factory=list)


@dataclass(eq=False)
class Outline:
    """`alone` is a program of this script only, for questions that need no other."""

    alone: Program
    classes: list[Class] = field(default_factory=list)
    notes: dict[str | None, Notes] = field(default_factory=lambda: defaultdict(Notes))
    lookups: set[str] = field(default_factory=set)  # scopes of functions that only look a name up
    written_on: dict[ast.expr, str] = field(default_factory=dict)


def outline_of(script: Script) -> Outline:
    outline = Outline(Program(script, (script,)))
    outline.alone.imported[script.name] = import_table(script)
    _visit(outline, script)
    for node, func in outline.alone.func_of.items():
        notes = outline.notes[func.scope if func is not None else None]
        notes.nodes.append(node)
        _note(outline, notes, node)
        if name := _mention(outline.alone, node):
            maker = func
            while maker is not None and maker.name == "<lambda>":  # a lambda runs wherever its maker hands it
                maker = outline.alone.func_of[maker.node]
            outline.notes[maker.scope if maker is not None else None].mentions.update(name)
    outline.lookups = {f.scope for f in outline.alone.scopes.values() if _looks_up(outline, f)}
    return outline


def import_table(script: Script) -> dict[str, str]:
    table: dict[str, str] = {}
    for node in script.parents:
        if isinstance(node, ast.Import):
            for alias in node.names:
                head = alias.name.split(".")[0]
                table[alias.asname or head] = alias.name if alias.asname else head
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            for alias in node.names:
                table[alias.asname or alias.name] = f"{base}.{alias.name}"
    return table


# -- functions and classes ------------------------------------------------------------------------------


def _visit(outline: Outline, script: Script) -> None:
    """Record functions, classes and which function every node lies in, in the order they are written."""
    program = outline.alone
    stack: list[tuple[ast.AST, Func | None, Class | None]] = [(script.tree, None, None)]
    while stack:
        node, func, owner = stack.pop()
        program.script_of[node] = script
        program.func_of[node] = func
        below = children(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            inner = _function(program, script, node, owner)
            decorators = getattr(node, "decorator_list", [])
            stack += [(child, func if child in decorators else inner, None) for child in reversed(below)]
            continue
        if isinstance(node, ast.ClassDef):
            bases = tuple(dotted_name(b).split(".")[-1] for b in node.bases)
            owner = Class(node, script, node.name, bases)
            outline.classes.append(owner)
            program.classes.setdefault(node.name, owner)
        stack += [(child, func, owner) for child in reversed(below)]


def _function(program: Program, script: Script, node: Function, owner: Class | None) -> Func:
    name = getattr(node, "name", "<lambda>")
    scope = f"{script.name}:{node.lineno}:{node.col_offset}:{name}"
    inner = Func(node, script, name, scope, owner.name if owner else None)
    program.scopes[scope] = inner
    if name != "<lambda>":
        program.functions[name].append(inner)
        if owner is not None:
            owner.methods[name] = inner
    a = node.args
    every = (*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, (a.vararg, a.kwarg)))
    program.locals_of[scope] = {p.arg for p in every} | _bound_names(node)
    return inner


def _bound_names(func: ast.AST) -> set[str]:
    names: set[str] = set()
    free: set[str] = set()
    stack: list[ast.AST] = children(func)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                names.add(node.id)
            continue
        if isinstance(node, ast.Global | ast.Nonlocal):
            free.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)  # an import inside a function still names a global of another module
        stack.extend(children(node))
    return names - free


def _looks_up(outline: Outline, func: Func) -> bool:
    """A function that does nothing but read a field whose name it is given: `safe_get(cfg, "train.lr", 1e-4)`."""
    called = {name for name, _ in outline.notes[func.scope].calls}
    if not called <= LOOKS_UP | {func.name} or not func.params:
        return False
    text = "\n".join(func.script.lines[func.node.lineno - 1 : func.node.end_lineno])
    if not DYNAMIC.search(text):
        return False
    inner = {callee(n) for n in ast.walk(func.node) if isinstance(n, ast.Call)}
    return inner <= LOOKS_UP | {func.name}


# -- names ----------------------------------------------------------------------------------------------


def _mention(program: Program, node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Attribute(attr=name):
            return {OF_CONFIG + name} if _config_field(program, node) else {name}
        case ast.Constant(value=str(text)) if text.isidentifier() and not _only_a_key(program, node):
            return {text}  # getattr(module, "Trainer"), a registry
        case ast.ImportFrom(names=names):
            return {a.name for a in names if a.asname}
    return set()


def _config_field(program: Program, node: ast.Attribute) -> bool:
    """`args.learning_rate` read from a configuration: no mention of a method of that name, unless it is a property."""
    up = program.parent(node)
    called = isinstance(up, ast.Call) and up.func is node
    return not called and bool(words.CONFIG_NAMES.match(dotted_name(node.value).split(".")[-1]))


def _only_a_key(program: Program, node: ast.Constant) -> bool:
    """The key of an entry, or a name in `__all__`: not what starts a function of that name."""
    up = program.parent(node)
    if isinstance(up, ast.Dict):
        return any(key is node for key in up.keys)
    if isinstance(up, ast.Subscript):
        return dotted_name(up.value).split(".")[-1] not in NAMESPACES
    over = program.parent(up or node)
    return isinstance(over, ast.Assign) and "__all__" in ast.unparse(over.targets[0])


def _note(outline: Outline, notes: Notes, node: ast.AST) -> None:
    program = outline.alone
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            notes.reads.append((program.variable(name, node), node))
        case ast.Attribute(attr=name, ctx=ast.Load()):
            if not _of_library(program, node):
                notes.reads.append((("f", name), node))
        case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            notes.reads.append((("f", name), node))
        case ast.Call():
            _note_call(notes, node)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _write(outline, notes, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _write(outline, notes, target, value)
        case ast.NamedExpr(target=target, value=value):
            _write(outline, notes, target, value)
        case ast.AugAssign(target=target):
            _blur(program, notes, target)
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            _blur(program, notes, target)
        case ast.withitem(optional_vars=ast.expr() as target):
            _blur(program, notes, target)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if (text := constant_text(key)) is not None:
                    notes.writes.append((("f", text), value))


def _of_library(program: Program, node: ast.Attribute) -> bool:
    """`torch.optim.lr_scheduler` is a module of torch, and no read of an option called lr_scheduler."""
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and program.origin(node).split(".")[0] in LIBRARIES


def texts_of(call: ast.Call) -> list[str]:
    return [t for a in (*call.args, *(k.value for k in call.keywords)) if (t := constant_text(a))]


def _note_call(notes: Notes, call: ast.Call) -> None:
    name = callee(call)
    notes.calls.append((name, call))
    if name in ("get", "pop", "setdefault") and isinstance(call.func, ast.Attribute) and call.args:
        if (key := constant_text(call.args[0])) is not None:
            notes.reads.append((("f", key), call))
    elif name in ("getattr", "hasattr", "attrgetter", "itemgetter", "select"):
        notes.reads += [(("f", part), call) for text in texts_of(call) for part in text.split(".")]
    elif name == "set_defaults":
        notes.writes += [(("f", k.arg), k.value) for k in call.keywords if k.arg is not None]


def _write(outline: Outline, notes: Notes, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        parts = target.elts
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts):
            for part, one in zip(parts, value.elts, strict=True):
                _write(outline, notes, part, one)
        else:
            for part in parts:
                _blur(outline.alone, notes, part)
        return
    rest = outline.alone.rest_of(target)
    if rest is not None:
        notes.writes.append((rest, value))
        if isinstance(target, ast.Attribute):
            outline.written_on[value] = dotted_name(target.value).split(".")[-1]


def _blur(program: Program, notes: Notes, target: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            _blur(program, notes, part)
    elif isinstance(target, ast.Starred):
        _blur(program, notes, target.value)
    elif (rest := program.rest_of(target)) is not None:
        notes.opaque.append(rest)
