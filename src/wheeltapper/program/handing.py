"""What a call does with a value it is given: shows it, passes it on, keeps it, or acts on it; and conditions."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from wheeltapper.program import vocabulary as words
from wheeltapper.program.program import Func, callee, constant_text, dotted_name
from wheeltapper.program.trace import Form, Step, base_of, holder_of

if TYPE_CHECKING:
    from wheeltapper.program.climb import Walk

SPAWNS = {"spawn": 1, "Process": 0, "Thread": 0, "start_processes": 1}  # parameters it fills in itself
CALLS_FIRST = {"partial", "submit", "apply_async", "apply", "launch", "remote"}


def shows(walk: Walk, call: ast.Call) -> bool:
    name = callee(call)
    if isinstance(call.func, ast.Name):
        return name in words.SHOWS and (name == "print" or not walk.flow.program.functions.get(name))
    receiver = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if name in words.LOG_METHODS and (words.LOGGER.search(receiver) or "logger" in receiver.lower()):
        return True
    if name in words.RECORD_METHODS and words.RECORDER.search(receiver):
        return True
    if receiver.endswith("wandb.config") or (name == "update" and "wandb" in receiver):
        return True
    return saves(call) and not walk.flow.starts_programs


def saves(call: ast.Call) -> bool:
    receiver = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    return callee(call) in words.SAVES and bool(words.SAVERS.search(receiver))


def names_the_place(node: ast.AST, call: ast.Call, keyword: ast.keyword | None) -> bool:
    """Whether an argument says where something is saved or recorded, and is not what is recorded."""
    if callee(call) == "init_trackers":
        return keyword.arg != "config" if keyword is not None else node in call.args[:1]
    return saves(call) and keyword is None and node in call.args[1:]


def passed(walk: Walk, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> Step:
    program = walk.flow.program
    name = callee(call)
    dotted = dotted_name(call.func)
    funcs, unseen = walk.flow.targets(call)
    if form == "box" and name in program.accessors and looks_up_constants(call):
        return None  # safe_get(cfg, "train.lr"): the names it is called with count as read
    if funcs and not unseen:
        for func in funcs:
            enter(walk, node, call, keyword, func, form)
        return None
    if shows(walk, call) or (name == "init" and "wandb" in dotted and keyword is not None and keyword.arg == "config"):
        if names_the_place(node, call, keyword):
            walk.out.named.append(call)
            if form != "text":
                walk.acts(call, f"names what {dotted}() writes")
            return None
        walk.out.shows.append(call)
        if name == "init" and form == "box":
            for read in program.reads.get(("f", "config"), []):  # comes back as wandb.config
                if (base := base_of(read)) is not None and dotted_name(base).split(".")[-1] in ("wandb", "run"):
                    walk.climb(read, "box")
        return None
    cls = program.class_called(call)
    if cls is not None and cls.is_dataclass:
        return into_dataclass(walk, node, call, keyword, form)
    if name in ("setattr", "__setattr__") and len(call.args) >= 2:
        return set_attribute(walk, node, call, form)
    if name in ("getattr", "hasattr"):
        return get_attribute(node, call, form)
    if name.endswith(("Error", "Exception", "Warning", "Exit")) or name == "exit":
        walk.out.shows.append(call)
        return None
    if name == "tqdm" or name == "trange":
        return progress_bar(walk, call, keyword, form)
    if form == "text" and name in words.NAMES_THINGS:
        walk.out.named.append(call)
        return call, form
    if name in words.TEXTS:
        return call, "any" if form in ("any", "box") else "text"
    if name in words.BOXES and keyword is not None and keyword.arg is not None:
        walk.rest(("f", keyword.arg), form)
        return call, "box"
    if form in ("box", "any") and (name in words.BOXES or (name in words.OMEGACONF_BOXES and "OmegaConf" in dotted)):
        return call, "box" if form == "box" else form
    if (
        name == "update"
        and isinstance(call.func, ast.Attribute)
        and walk.plain_holder(holder_of(call.func.value), False)
    ):
        updates(walk, call, keyword, form)
        return None
    if name in ("append", "add", "extend", "insert") and isinstance(call.func, ast.Attribute):
        appends(walk, call, form)
        return None
    if name == "set_defaults":
        return None
    if name in ("get", "pop", "setdefault") and keyword is None and node in call.args[1:]:
        return call, form  # the default of a look-up
    if name in words.PASSES and not walk.inert and form != "box":
        return call, form
    if name in ("isinstance", "len", "type", "id") and form == "box":
        return None
    if name in SPAWNS or name in CALLS_FIRST:
        handed_to_spawn(walk, node, call, keyword, form)
        return None
    if funcs:
        for func in funcs:
            enter(walk, node, call, keyword, func, form)
    walk.acts(call, f"given to {dotted or 'a call'}()")
    return None


def enter(walk: Walk, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, func: Func, form: Form) -> None:
    """Into the parameter of one of the program's own functions."""
    params = func.params
    kwarg = func.node.args.kwarg
    if keyword is not None and keyword.arg is not None:
        if keyword.arg in params or keyword.arg in func.keyword_only:
            walk.rest(("v", func.scope, keyword.arg), form)
        elif kwarg is not None:
            walk.rest(("f", keyword.arg), form)
            walk.rest(("v", func.scope, kwarg.arg), "box")
        else:
            walk.acts(call, "given to an unknown parameter")
    elif keyword is not None:  # f(**box)
        if form == "box":
            for name in (*params, *func.keyword_only):
                walk.flow.aliases[name].add(("v", func.scope, name))
            if kwarg is not None:
                walk.rest(("v", func.scope, kwarg.arg), "box")
        else:
            walk.acts(call, "unpacked into a call")
    elif isinstance(node, ast.Starred) or any(isinstance(a, ast.Starred) for a in call.args):
        for name in params:
            walk.rest(("v", func.scope, name), form)
        if func.node.args.vararg:
            walk.rest(("v", func.scope, func.node.args.vararg.arg), form)
    else:
        position = call.args.index(node) if node in call.args else len(params)
        if position < len(params):
            walk.rest(("v", func.scope, params[position]), form)
        elif func.node.args.vararg:
            walk.rest(("v", func.scope, func.node.args.vararg.arg), form)
        else:
            walk.acts(call, f"given to {func.name}()")


def into_dataclass(walk: Walk, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> Step:
    cls = walk.flow.program.class_called(call)
    assert cls is not None
    if keyword is not None and keyword.arg is None:
        if form == "box":
            return call, "box"
        walk.acts(call, "unpacked into a call")
        return None
    if keyword is not None and keyword.arg is not None:
        walk.rest(("f", keyword.arg), form)
    else:
        position = call.args.index(node) if node in call.args else 10**6
        names = [f.target.id for f in cls.fields if isinstance(f.target, ast.Name)]
        if position >= len(names):
            walk.acts(call, f"given to {cls.name}()")
            return None
        walk.rest(("f", names[position]), form)
    walk.rest(("i", cls.name), "box")
    return call, "box"


def set_attribute(walk: Walk, node: ast.AST, call: ast.Call, form: Form) -> Step:
    base, key = call.args[0], call.args[1]
    if node is base:
        return None  # something is stored in the box; the box itself is not used
    if node is key:
        if form == "any":
            return None
        walk.acts(call, "used as a name")
        return None
    walk.store(base, constant_text(key), form, call)
    return None


def get_attribute(node: ast.AST, call: ast.Call, form: Form) -> Step:
    if call.args and node is call.args[0]:
        if form != "box":
            return call, form
        key = call.args[1] if len(call.args) > 1 else None
        if constant_text(key) is not None or callee(call) == "hasattr":
            return None
        return call, "any"
    return call, form  # the default, or a name


def looks_up_constants(call: ast.Call) -> bool:
    return any(constant_text(a) for a in (*call.args, *(k.value for k in call.keywords)))


def progress_bar(walk: Walk, call: ast.Call, keyword: ast.keyword | None, form: Form) -> Step:
    if keyword is None or keyword.arg == "iterable":
        return call, form
    shown = walk.out.decides_shows if keyword.arg == "disable" else walk.out.shows
    shown.append(call)
    return None


def updates(walk: Walk, call: ast.Call, keyword: ast.keyword | None, form: Form) -> None:
    assert isinstance(call.func, ast.Attribute)
    base = holder_of(call.func.value)
    holder = walk.flow.program.rest_of(base)
    if form == "value" and keyword is not None and keyword.arg:
        walk.rest(("f", keyword.arg), form)
    elif form in ("value", "text"):
        walk.acts(call, "merged into a dictionary")
        return
    if holder is not None:
        walk.rest(walk.instance_of(base) or holder, "box")


def appends(walk: Walk, call: ast.Call, form: Form) -> None:
    assert isinstance(call.func, ast.Attribute)
    holder = walk.flow.program.rest_of(call.func.value)
    values = walk.flow.program.writes.get(holder, []) if holder else []
    if holder is not None and holder[0] == "v" and values and all(isinstance(v, ast.List | ast.Set) for v in values):
        walk.rest(holder, form)
    else:
        walk.acts(call, "added to a collection")


def spawned(walk: Walk, call: ast.Call) -> list[Func]:
    """The program's functions that mp.spawn(f, ...), Process(target=f, ...) or partial(f, ...) will call."""
    given = next((k.value for k in call.keywords if k.arg in ("target", "fn")), call.args[0] if call.args else None)
    name = dotted_name(given).split(".")[-1] if given is not None else ""
    return walk.flow.program.functions.get(name, [])


def spawn_argument(
    walk: Walk, node: ast.expr, parent: ast.Tuple | ast.List | ast.Set, up: ast.AST | None, form: Form
) -> bool:
    """An element of `args=(n, cfg)`: into the parameter at its place."""
    call = walk.flow.program.parent(up) if isinstance(up, ast.keyword) and up.arg == "args" else up
    if not isinstance(call, ast.Call) or callee(call) not in SPAWNS:
        return False
    funcs = spawned(walk, call)
    position = parent.elts.index(node) + SPAWNS[callee(call)]
    for func in funcs:
        if position < len(func.params):
            walk.rest(("v", func.scope, func.params[position]), form)
        else:
            walk.acts(call, "given to a process")
    return bool(funcs)


def handed_to_spawn(walk: Walk, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> None:
    funcs = spawned(walk, call) if callee(call) in CALLS_FIRST else []
    for func in funcs:
        if keyword is not None:
            enter(walk, node, call, keyword, func, form)
        elif node in call.args[1:] and call.args.index(node) - 1 < len(func.params):
            walk.rest(("v", func.scope, func.params[call.args.index(node) - 1]), form)
        else:
            walk.acts(call, "given to a call made later")
    if not funcs:
        walk.acts(call, f"given to {dotted_name(call.func)}()")


def decides(walk: Walk, branch: ast.If, form: Form) -> None:
    """A condition. It acts if anything but showing hangs on it; what is assigned under it depends on it."""
    if form in ("box", "any") or walk.inert:  # `if v is not None` over all fields is plumbing, not a use of one
        return
    for statement in (*branch.body, *branch.orelse):
        hangs(walk, statement, branch, form)


def hangs(walk: Walk, statement: ast.stmt, branch: ast.If, form: Form) -> None:
    match statement:
        case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
            return
        case ast.Expr(value=ast.Call() as call) if shows(walk, call):
            if saves(call):
                walk.acts(branch, "decides what is saved")
            walk.out.decides_shows.append(call)
        case ast.If(body=body, orelse=orelse) | ast.For(body=body, orelse=orelse):
            if isinstance(statement, ast.For) and not quiet(walk, statement.iter):
                walk.acts(branch, "decides what runs")
            for inner in (*body, *orelse):
                hangs(walk, inner, branch, form)
        case ast.With(body=body):
            for inner in body:
                hangs(walk, inner, branch, form)
        case ast.Assign(targets=targets, value=value) if quiet(walk, value):
            for target in targets:
                walk.assign(target, form if form == "any" else "value")
        case ast.AnnAssign(target=target, value=value) if value is None or quiet(walk, value):
            walk.assign(target, form if form == "any" else "value")
        case ast.AugAssign(target=target, value=value) if quiet(walk, value):
            walk.assign(target, form if form == "any" else "value")
        case _:
            walk.acts(branch, "decides what runs")


def quiet(walk: Walk, node: ast.expr) -> bool:
    """Whether evaluating an expression does nothing but compute a plain value."""
    return all(
        callee(call) in words.PASSES | words.TEXTS | words.VALUE_METHODS or shows(walk, call)
        for call in ast.walk(node)
        if isinstance(call, ast.Call)
    )
