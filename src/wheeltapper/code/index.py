"""Build a Program: which functions and classes there are, and where every name is read and written."""

from __future__ import annotations

import ast
import re
from collections import defaultdict

from wheeltapper.code import vocabulary as words
from wheeltapper.code.program import Class, Func, Function, Program, Rest, callee, constant_text, dotted_name
from wheeltapper.code.scripts import Launch, Script, Sources

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
QUIET_DECORATORS = {
    "property", "staticmethod", "classmethod", "dataclass", "no_grad", "inference_mode", "abstractmethod", "contextmanager",
    "lru_cache", "cache", "cached_property", "wraps", "setter", "overload", "override", "final", "total_ordering", "compile", "jit",
}  # fmt: skip
MAY_TRAIN = re.compile(
    r"backward\(|Trainer\b|LightningModule|\.fit\(|Learner\b|Runner\b"
)  # cheap; objects.trains decides
DYNAMIC = re.compile(r"getattr\(|\.get\([a-z_]+[,)]|\[[a-z_]+\]")


def programs_of(sources: Sources) -> list[Program]:
    """One program for each entry script that may train: one that runs when started, or that nothing else imports."""
    by_tail = defaultdict(list)
    for script in sources.scripts:
        for cut in range(len(script.module)):
            by_tail[".".join(script.module[cut:])].append(script)
    uses: dict[str, list[Script]] = {}
    for script in sources.scripts:
        found = [s for wanted in _imported_modules(script) for s in _nearest(script, by_tail.get(wanted, []))]
        uses[script.name] = list({s.name: s for s in found}.values())
    imported = {s.name for found in uses.values() for s in found}
    entries = [s for s in sources.scripts if starts(s) or s.name not in imported]
    out = []
    for entry in entries:
        closure = {entry.name: entry}
        queue = [entry]
        while queue:
            for other in uses[queue.pop().name]:
                if other.name not in closure:
                    closure[other.name] = other
                    queue.append(other)
        if any(MAY_TRAIN.search(script.text) for script in closure.values()):
            out.append(program_of(entry, tuple(closure.values()), sources.launches))
    return out


def _nearest(script: Script, candidates: list[Script]) -> list[Script]:
    """Of several modules of one name, those that share most of their path with the importer."""

    def shared(other: Script) -> int:
        pairs = zip(script.module[:-1], other.module[:-1], strict=False)
        return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(script.module), len(other.module)) - 1)

    others = [c for c in candidates if c is not script]
    best = max(map(shared, others), default=0)
    return [c for c in others if shared(c) == best]


def program_of(entry: Script, scripts: tuple[Script, ...], launches: tuple[Launch, ...] = ()) -> Program:
    program = Program(entry, scripts, launches)
    for script in scripts:
        program.modules.update(".".join(script.module[cut:]) for cut in range(len(script.module)))
        program.imported[script.name] = _import_table(script)
        _visit(program, script, script.tree, None, None)
    program.reachable = _reachable(program)
    program.accessors = _accessors(program)
    for node in program.live_nodes():
        _note(program, node, program.accessors)
    for calls in program.calls.values():
        for call in calls:
            _bind(program, call)
    return program


def starts(script: Script) -> bool:
    return any(isinstance(n, ast.If) and "__name__" in ast.unparse(n.test) for n in script.tree.body)


def _imported_modules(script: Script) -> set[str]:
    names: set[str] = set()
    for node in script.parents:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            names.add(base)
            names.update(f"{base}.{alias.name}" if base else alias.name for alias in node.names)
    return names - {""}


def _import_table(script: Script) -> dict[str, str]:
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


def _visit(program: Program, script: Script, node: ast.AST, func: Func | None, owner: Class | None) -> None:
    """Record functions, classes and which function every node lies in."""
    program.script_of[node] = script
    program.func_of[node] = func
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        inner = _function(program, script, node, owner)
        decorators = getattr(node, "decorator_list", [])
        for child in ast.iter_child_nodes(node):
            _visit(program, script, child, func if child in decorators else inner, None)
        return
    if isinstance(node, ast.ClassDef):
        bases = tuple(dotted_name(b).split(".")[-1] for b in node.bases)
        owner = Class(node, script, node.name, bases)
        program.classes.setdefault(node.name, owner)
    for child in ast.iter_child_nodes(node):
        _visit(program, script, child, func, owner)


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
    stack: list[ast.AST] = list(ast.iter_child_nodes(func))
    while stack:
        node = stack.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
            continue
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            free.update(node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)  # an import inside a function still names a global of another module
        stack.extend(ast.iter_child_nodes(node))
    return names - free


def _accessors(program: Program) -> set[str]:
    """Functions that do nothing but read a field whose name they are given: `safe_get(cfg, "train.lr", 1e-4)`."""
    found = set()
    for name, funcs in program.functions.items():
        if all(f.params and DYNAMIC.search(_text(f)) for f in funcs):
            inner = {callee(n) for f in funcs for n in ast.walk(f.node) if isinstance(n, ast.Call)}
            if inner <= {"getattr", "hasattr", "split", "isinstance", "get", name}:
                found.add(name)
    return found


def _reachable(program: Program) -> set[str]:
    """Scopes of the functions that starting the entry can come to, by the names its code mentions.

    An entry imports a package for one of its functions; what the others of that package read is no use
    of this program's options. A function counts as soon as its name stands anywhere in reachable code,
    a method as soon as its class does too. A class built on one from outside may have any of its methods
    called from there. Names made at run time, or no start to begin from, make everything reachable.
    """
    every = {f.scope for funcs in program.functions.values() for f in funcs}
    if not starts(program.entry):
        return every
    mentioned: set[str] = set()
    inside: dict[str | None, set[str]] = defaultdict(set)
    for node, func in program.func_of.items():
        name = _mention(node) if not _in_all(program, node) else set()
        if name:
            while func is not None and func.name == "<lambda>":  # a lambda runs wherever its maker hands it
                func = program.func_of[func.node]
            inside[func.scope if func else None].update(name)
    mentioned |= inside[None]
    reached: set[str] = set()
    while True:
        fresh = {s for s in every - reached if _is_mentioned(program, program.scopes[s], mentioned, reached)}
        if not fresh:
            return reached
        reached |= fresh
        for scope in fresh:
            mentioned |= inside[scope]


def _mention(node: ast.AST) -> set[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name}
        case ast.Constant(value=str(text)) if text.isidentifier():
            return {text}  # getattr(module, "Trainer"), a registry
        case ast.ImportFrom(names=names):
            return {a.name for a in names if a.asname}
    return set()


def _in_all(program: Program, node: ast.AST) -> bool:
    """A name in `__all__`: exported, not used."""
    if not isinstance(node, ast.Constant):
        return False
    up = program.parent(program.parent(node) or node)
    return isinstance(up, ast.Assign) and "__all__" in ast.unparse(up.targets[0])


def _is_mentioned(program: Program, func: Func, mentioned: set[str], reached: set[str]) -> bool:
    outer = program.func_of[func.node]
    if outer is not None and outer.scope not in reached:
        return False
    if any(registers(d) for d in getattr(func.node, "decorator_list", [])):
        return True
    if func.owner is None:
        return func.name in mentioned
    cls = program.classes.get(func.owner)
    if cls is None or any(registers(d) for d in cls.node.decorator_list):
        return True
    family = {func.owner, *(c.name for c in program.classes.values() if func.owner in c.bases)}
    if not family & mentioned:
        return False
    outside = any(base not in program.classes and base not in words.INERT_BASES for base in cls.bases)
    return outside or func.name in mentioned or func.name.startswith("__") or func.name == "forward"


def registers(decorator: ast.expr) -> bool:
    """A decorator that may hand the function or class to something else; the common ones do not."""
    return dotted_name(decorator).split(".")[-1] not in QUIET_DECORATORS


def _text(func: Func) -> str:
    return "\n".join(func.script.lines[func.node.lineno - 1 : func.node.end_lineno])


def _note(program: Program, node: ast.AST, accessors: set[str]) -> None:
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            program.reads[program.variable(name, node)].append(node)
        case ast.Attribute(attr=name, ctx=ast.Load()) if not _of_library(program, node):
            program.reads["f", name].append(node)
        case ast.Subscript(slice=ast.Constant(value=str(name)), ctx=ast.Load()):
            program.reads["f", name].append(node)
        case ast.Call():
            _note_call(program, node, accessors)
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                _write(program, target, value)
        case ast.AnnAssign(target=target, value=ast.expr() as value):
            _write(program, target, value)
        case ast.NamedExpr(target=target, value=value):
            _write(program, target, value)
        case ast.AugAssign(target=target):
            _blur(program, target)
        case ast.For(target=target) | ast.AsyncFor(target=target) | ast.comprehension(target=target):
            _blur(program, target)
        case ast.withitem(optional_vars=ast.expr() as target):
            _blur(program, target)
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                if (text := constant_text(key)) is not None:
                    program.writes["f", text].append(value)


def _of_library(program: Program, node: ast.Attribute) -> bool:
    """`torch.optim.lr_scheduler` is a module of torch, and no read of an option called lr_scheduler."""
    value: ast.expr = node.value
    while isinstance(value, ast.Attribute):
        value = value.value
    return isinstance(value, ast.Name) and program.origin(node).split(".")[0] in LIBRARIES


def _note_call(program: Program, call: ast.Call, accessors: set[str]) -> None:
    name = callee(call)
    program.calls[name].append(call)
    texts = [t for a in (*call.args, *(k.value for k in call.keywords)) if (t := constant_text(a))]
    if name in ("get", "pop", "setdefault") and isinstance(call.func, ast.Attribute) and call.args:
        if (key := constant_text(call.args[0])) is not None:
            program.reads["f", key].append(call)
    elif name in ("getattr", "hasattr", "attrgetter", "itemgetter", "select") and texts:
        for text in texts:
            for part in text.split("."):
                program.reads["f", part].append(call)
    elif name == "set_defaults":
        for keyword in call.keywords:
            if keyword.arg is not None:
                program.writes["f", keyword.arg].append(keyword.value)
    elif name in accessors:
        for text in texts:
            if DOTTED.match(text):
                for part in text.split("."):
                    program.reads["f", part].append(call)


def _write(program: Program, target: ast.expr, value: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        parts = target.elts
        if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(parts):
            for part, one in zip(parts, value.elts, strict=True):
                _write(program, part, one)
        else:
            for part in parts:
                _blur(program, part)
        return
    rest = program.rest_of(target)
    if rest is not None:
        program.writes[rest].append(value)
        if isinstance(target, ast.Attribute):
            program.written_on[value] = dotted_name(target.value).split(".")[-1]


def _blur(program: Program, target: ast.expr) -> None:
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            _blur(program, part)
    elif isinstance(target, ast.Starred):
        _blur(program, target.value)
    elif (rest := program.rest_of(target)) is not None:
        program.opaque.add(rest)


def _bind(program: Program, call: ast.Call) -> None:
    """Arguments are writes of the parameters they are given for."""
    funcs, _ = program.targets(call)
    for func in funcs:
        params = func.params
        starred = any(isinstance(a, ast.Starred) for a in call.args)
        for position, value in enumerate(() if starred else call.args):
            if position < len(params):
                program.writes["v", func.scope, params[position]].append(value)
        for keyword in call.keywords:
            if keyword.arg is not None:
                program.writes["v", func.scope, keyword.arg].append(keyword.value)
        if starred or any(k.arg is None for k in call.keywords):
            for name in (*params, *func.keyword_only):
                program.opaque.add(("v", func.scope, name))


def parameter_default(func: Func, name: str) -> ast.expr | None:
    """The default of a parameter, as written."""
    a = func.node.args
    positional = [*a.posonlyargs, *a.args]
    for param, default in zip(reversed(positional), reversed(a.defaults), strict=False):
        if param.arg == name:
            return default
    for param, value in zip(a.kwonlyargs, a.kw_defaults, strict=True):
        if param.arg == name:
            return value
    return None


__all__ = ["Rest", "parameter_default", "program_of", "programs_of"]
