"""Follow a value from where it is read to what is done with it, by names, without running anything.

`Flow.trace` starts at expressions and climbs: into assignments, fields, parameters and returns of the
program's own functions, until each path ends in something that *shows* the value (print, log, a saved
file), something that *acts* on it, or nothing. Whatever is not understood acts. So "never acts" is a
proof within the program, and every gap in our understanding costs a finding instead of inventing one.

A value travels in one of four forms:
    value   the value itself, or something computed from it
    text    the value formatted into a string: it can name a file, it can no longer be a number
    box     something that holds the value under its name (a namespace, a dict, a config object)
    any     some field of a box, picked by a name we do not know
"""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Literal

from wheeltapper.code import vocabulary as words
from wheeltapper.code.program import Func, Program, Rest, callee, constant_text, dotted_name

Form = Literal["value", "text", "box", "any"]
SPAWNS = {"spawn": 1, "Process": 0, "Thread": 0, "start_processes": 1}  # parameters it fills in itself
READS_BY_NAME = {
    "__getitem__", "__getattr__", "__getattribute__", "get", "__iter__", "__contains__", "__repr__", "__str__", "__len__", "__eq__",
}  # fmt: skip
CALLS_FIRST = {"partial", "submit", "apply_async", "apply", "launch", "remote", "spawn_train"}


@dataclass
class Trace:
    """Where a value went."""

    acts: list[tuple[ast.AST, str]] = field(default_factory=list)
    shows: list[ast.AST] = field(default_factory=list)
    named: list[ast.AST] = field(default_factory=list)  # formatted into the name of a file or a run
    decides_shows: list[ast.AST] = field(default_factory=list)  # decides only whether something is shown
    rests: set[Rest] = field(default_factory=set)  # everywhere it came to rest


@dataclass(eq=False)
class Flow:
    """The climbing. `aliases` are parameters fed by `f(**box)`: the field of that name flows into them."""

    program: Program
    aliases: dict[str, set[Rest]] = field(default_factory=lambda: defaultdict(set))
    boxes: set[Rest] = field(default_factory=set)  # everywhere a configuration rests, from the first pass
    _box_traces: dict[Rest, Trace] = field(default_factory=dict)
    _dicts: dict[str, ast.Dict] = field(default_factory=dict)
    _owners: dict[str, set[Rest]] = field(default_factory=dict)
    _tracing: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.starts_programs = any(name in self.program.calls for name in words.STARTS_PROGRAMS) or any(
            "subprocess" in table.values() or "deepspeed" in table.values()
            for table in self.program.imported.values()
        )

    # -- asking ---------------------------------------------------------------------------------

    def trace(
        self, starts: list[tuple[ast.expr, Form]], rests: list[tuple[Rest, Form]] = [], inert: frozenset[str] = frozenset()  # noqa: B006 (never written)
    ) -> Trace:
        """Follow expressions (and everything read from `rests`) to their ends.

        `inert` names methods that neither change nor use the thing they are called on.
        """
        return _Walk(self, inert).run(starts, rests)

    def box_trace(self, rest: Rest) -> Trace:
        """Where a box resting in `rest` goes; the same for every field in it, so computed once."""
        if rest not in self._box_traces:
            self._box_traces[rest] = _Walk(self, frozenset(), whole=True).run([], [(rest, "box")])
        return self._box_traces[rest]

    def owned(self, name: str, holder: ast.Dict) -> Rest:
        """The rest of a key of one dictionary literal."""
        key = f"dict:{self.program.script_of[holder].name}:{holder.lineno}:{holder.col_offset}"
        self._dicts[key] = holder
        return ("o", name, key)

    def is_box(self, rest: Rest) -> bool:
        """Whether a configuration rests here, as far as the first pass saw."""
        return rest in self.boxes or (rest[0] == "f" and any(b[0] == "o" and b[1] == rest[1] for b in self.boxes))

    def may_hold(self, node: ast.expr, owner: str) -> bool:
        """Whether a read of a field can be of the given owner: a class, or a dictionary literal."""
        base = _base(node)
        if base is None:
            return True
        if owner not in self._dicts:
            other = self.program.class_of(base)
            return other is None or self._related(other, owner)
        if owner in self._tracing:
            return True
        self._tracing.add(owner)
        holder = self._dicts[owner]
        if owner not in self._owners:
            self._owners[owner] = _Walk(self, frozenset(), whole=True).run([(holder, "box")], []).rests
        self._tracing.discard(owner)
        rests = self._owners[owner]
        rest = self.program.rest_of(base)
        if rest is None:
            name = callee(base) if isinstance(base, ast.Call) else ""
            return not (isinstance(base, ast.Call) and self.program.functions.get(name)) or ("r", name) in rests
        owner_class = self.program.class_of(base)
        held = {r[:2] for r in rests}
        if rest in rests or rest in held or ("i", owner_class) in rests or (rest[0] == "f" and ("o", rest[1]) in held):
            return True
        return any("load" in dotted_name(v) for v in self.program.writes.get(rest, []))

    def _related(self, a: str, b: str) -> bool:
        return a == b or a in self._ancestors(b) or b in self._ancestors(a) or bool(self._ancestors(a) & self._ancestors(b))

    def _ancestors(self, name: str, depth: int = 0) -> set[str]:
        cls = self.program.classes.get(name)
        if cls is None or depth > 8:
            return set()
        ours = {b for b in cls.bases if b in self.program.classes}
        return ours | {a for b in ours for a in self._ancestors(b, depth + 1)}

    def field_trace(self, name: str) -> Trace:
        """Where whatever is read under this attribute or key goes."""
        return self.trace([], [(("f", name), "value")])


@dataclass(eq=False)
class _Walk:
    flow: Flow
    inert: frozenset[str]
    whole: bool = False  # follow boxes here instead of asking for their cached trace
    out: Trace = field(default_factory=Trace)
    queue: list[tuple[Rest, Form]] = field(default_factory=list)
    seen: set[tuple[Rest, Form]] = field(default_factory=set)
    climbed: set[tuple[ast.AST, Form]] = field(default_factory=set)

    def run(self, starts: list[tuple[ast.expr, Form]], rests: list[tuple[Rest, Form]]) -> Trace:
        for rest, form in rests:
            self.rest(rest, form)
        for node, form in starts:
            self.climb(node, form)
        while self.queue:
            rest, form = self.queue.pop()
            if form == "box" and not self.whole and not self.inert:
                done = self.flow.box_trace(rest)
                self.out.acts += done.acts
                self.out.shows += done.shows
                self.out.rests |= done.rests
            else:
                self.read(rest, form)
            if not self.queue:  # a box unpacked late may feed parameters from fields read early
                for seen, kind in list(self.seen):
                    if seen[0] in "fo" and kind != "box":
                        for alias in self.flow.aliases.get(seen[1], ()):
                            self.rest(alias, kind)
        return self.out

    def rest(self, rest: Rest, form: Form) -> None:
        if (rest, form) not in self.seen:
            self.seen.add((rest, form))
            self.out.rests.add(rest)
            self.queue.append((rest, form))

    def read(self, rest: Rest, form: Form) -> None:
        program = self.flow.program
        for node in list(program.reads.get(rest, [])):
            self.climb(node, form)
        if rest[0] == "f":
            for alias in self.flow.aliases.get(rest[1], ()):
                self.rest(alias, form)
        elif rest[0] == "o":
            self.read_owned(rest, form)
        elif rest[0] == "r":
            self.read_returned(rest[1], form)
        elif rest[0] == "i":
            self.read_instance(rest[1], form)

    def read_owned(self, rest: Rest, form: Form) -> None:
        """A field of one dictionary or of instances of one class: only reads that may be of that one count."""
        _, name, owner = rest
        for node in list(self.flow.program.reads.get(("f", name), [])):
            if self.flow.may_hold(node, owner):
                self.climb(node, form)
        for alias in self.flow.aliases.get(name, ()):
            self.rest(alias, form)

    def read_returned(self, name: str, form: Form) -> None:
        program = self.flow.program
        calls = program.calls.get(name, [])
        mentions = program.reads.get(("f", name), []) + [
            n for f in program.functions[name] for n in program.reads.get(program.variable(name, f.node), [])
        ]
        loose = [n for n in mentions if not _is_callee(program, n)]
        for call in calls:
            self.climb(call, form)
        for node in loose:  # a property, or a function handed on by name
            self.climb(node, form)
        if not calls and not loose:
            for func in program.functions[name]:
                if func.scope not in program.reachable:
                    continue
                self.acts(func.node, f"returned by {name}(), which something outside calls")

    def read_instance(self, name: str, form: Form) -> None:
        program = self.flow.program
        for call in program.calls.get(name, []):
            self.climb(call, form)
        cls = program.classes.get(name)
        for method in cls.methods.values() if cls else ():
            names = method.node.args.args
            if names:
                self.rest(("v", method.scope, names[0].arg), form)

    def acts(self, node: ast.AST, why: str) -> None:
        self.out.acts.append((node, why))

    # -- climbing -------------------------------------------------------------------------------

    def climb(self, node: ast.AST, form: Form) -> None:
        """From an expression that carries the value up to where it ends or comes to rest."""
        program = self.flow.program
        while True:
            if (node, form) in self.climbed:
                return
            self.climbed.add((node, form))
            parent = program.parent(node)
            step = self.step(node, parent, form)
            if step is None:
                return
            node, form = step

    def step(self, node: ast.AST, parent: ast.AST | None, form: Form) -> tuple[ast.AST, Form] | None:
        match parent:
            case ast.Attribute():
                return self.attribute(parent, form)
            case ast.Subscript():
                return self.subscript(node, parent, form)
            case ast.Call():
                if parent.func is node:
                    self.acts(parent, "called")
                    return None
                return self.passed(node, parent, None, form)
            case ast.keyword():
                call = self.flow.program.parent(parent)
                if isinstance(call, ast.Call):
                    return self.passed(node, call, parent, form)
                self.acts(parent, "class keyword")
                return None
            case ast.JoinedStr() | ast.FormattedValue():
                return parent, "any" if form in ("any", "box") else "text"
            case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()) | ast.BinOp(left=ast.JoinedStr(), op=ast.Mod()):
                return parent, "any" if form in ("any", "box") else "text"
            case ast.Compare():
                if form == "box" or self.inert:  # "key" in config, config is None, scheduler is not None
                    return None
                return parent, form
            case ast.BoolOp() | ast.BinOp() | ast.UnaryOp() | ast.Starred() | ast.Await() | ast.Slice():
                return parent, form
            case ast.IfExp():
                if parent.test is node and (form == "box" or self.inert):
                    return None
                return parent, form
            case ast.Tuple() | ast.List() | ast.Set():
                return self.into_sequence(node, parent, form)
            case ast.Dict():
                return self.into_dict(node, parent, form)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return parent, form
            case ast.DictComp():
                return parent, "box" if form == "any" else form
            case ast.comprehension():
                return self.comprehension(node, parent, form)
            case ast.NamedExpr():
                self.assign(parent.target, form)
                return parent, form
            case ast.Assign():
                for target in parent.targets:
                    self.assign(target, form)
            case ast.AnnAssign() | ast.AugAssign():
                self.assign(parent.target, form)
            case ast.Return() | ast.Yield() | ast.YieldFrom():
                self.returned(parent, form)
            case ast.Lambda():
                self.acts(parent, "returned by a lambda")
            case ast.If():
                self.decides(parent, form)
            case ast.For() | ast.AsyncFor():
                self.loops_over(parent, form)
            case ast.Expr() | ast.Delete() | ast.Global():
                pass
            case ast.Raise():
                self.out.shows.append(parent)
            case ast.arguments():
                self.default_of(node, parent, form)
            case _:
                self.acts(parent or node, _deed(parent))
        return None

    def attribute(self, parent: ast.Attribute, form: Form) -> tuple[ast.AST, Form] | None:
        call = self.flow.program.parent(parent)
        called = isinstance(call, ast.Call) and call.func is parent
        if form == "box":
            return self.box_attribute(parent, call if called else None)
        if not called:
            if not isinstance(parent.ctx, ast.Load):
                return None  # a field of the value is replaced; the value is not used
            if self.inert:
                if parent.attr not in self.inert:
                    self.acts(parent, f".{parent.attr} is taken from it")
                return None
            return parent, form
        assert isinstance(call, ast.Call)
        if parent.attr in self.inert:
            self.out.shows.append(call)
            return None
        if parent.attr in words.VALUE_METHODS and not self.inert:
            return call, form
        self.acts(call, f".{parent.attr}() is called on it")
        return None

    def box_attribute(self, parent: ast.Attribute, call: ast.AST | None) -> tuple[ast.AST, Form] | None:
        program = self.flow.program
        if call is None:
            return (parent, "box") if parent.attr in ("__dict__", "_content") else None
        assert isinstance(call, ast.Call)
        if parent.attr in words.BOX_METHODS:
            return call, "box"
        if parent.attr in words.BOX_SILENT or (parent.attr == "get" and call.args and constant_text(call.args[0]) is not None):
            return None
        if parent.attr == "get":
            return call, "any"
        owners = [f for f in program.functions.get(parent.attr, []) if f.owner]
        if owners:  # a method of the config's own class: what it reads, it reads by name
            for func in owners:
                if func.node.args.args:
                    self.rest(("v", func.scope, func.node.args.args[0].arg), "box")
            return None
        if program.reads.get(("f", parent.attr)) and parent.attr not in dir(dict):
            return None  # args.func(...): the field `func` is read here, the box itself is not
        self.acts(call, f".{parent.attr}() of the whole configuration")
        return None

    def subscript(self, node: ast.AST, parent: ast.Subscript, form: Form) -> tuple[ast.AST, Form] | None:
        if parent.slice is node:
            if not isinstance(parent.ctx, ast.Load):
                self.acts(parent, "used as a key")
                return None
            return parent, "value" if form == "box" else form
        if not isinstance(parent.ctx, ast.Load):
            return None
        if form != "box":
            return parent, form
        if constant_text(parent.slice) is not None:
            return None
        return parent, "any"

    def into_sequence(self, node: ast.AST, parent: ast.Tuple | ast.List | ast.Set, form: Form) -> tuple[ast.AST, Form] | None:
        up = self.flow.program.parent(parent)
        if isinstance(up, ast.Assign) and isinstance(node, ast.expr) and not isinstance(node, ast.Starred):
            for target in up.targets:
                if isinstance(target, ast.Tuple | ast.List) and len(target.elts) == len(parent.elts):
                    self.assign(target.elts[parent.elts.index(node)], form)
                else:
                    self.assign(target, form)
            return None
        if isinstance(up, ast.For) and up.target is parent:
            return None
        if self.spawn_argument(node, parent, up, form):
            return None
        return parent, form

    def into_dict(self, node: ast.AST, parent: ast.Dict, form: Form) -> tuple[ast.AST, Form]:
        for key, value in zip(parent.keys, parent.values, strict=True):
            if value is node and (text := constant_text(key)) is not None:
                self.rest(self.flow.owned(text, parent), form)
        return parent, "box"

    def comprehension(self, node: ast.AST, parent: ast.comprehension, form: Form) -> tuple[ast.AST, Form] | None:
        if parent.iter is node:
            self.assign(parent.target, "any" if form == "box" else form)
            if form != "box":
                up = self.flow.program.parent(parent)
                return (up, form) if up else None
            return None
        up = self.flow.program.parent(parent)
        return (up, form) if up is not None and form in ("value", "text") else None

    # -- resting --------------------------------------------------------------------------------

    def assign(self, target: ast.expr, form: Form) -> None:
        match target:
            case ast.Name(id=name):
                self.rest(self.flow.program.variable(name, target), form)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self.assign(part, form)
            case ast.Starred(value=value):
                self.assign(value, form)
            case ast.Attribute(value=base, attr=name):
                self.store(base, name, form, target)
            case ast.Subscript(value=base, slice=key):
                self.store(base, constant_text(key), form, target)
            case _:
                self.acts(target, "stored")

    def store(self, base: ast.expr, name: str | None, form: Form, target: ast.AST) -> None:
        """Into a field of something: harmless only where that something is known to be a plain holder."""
        if not self.plain_holder(base, isinstance(target, ast.Attribute)):
            self.acts(target, f"stored in {ast.unparse(base)}")
            return
        holder = self.flow.program.rest_of(base)
        is_self = isinstance(base, ast.Name) and base.id in ("self", "cls")
        if name is not None:
            owner = self.flow.program.class_of(base) if is_self else None
            self.rest(("o", name, owner) if owner else ("f", name), form)
        elif form in ("value", "text"):
            self.acts(target, "stored under a name made at run time")
            return
        if holder is not None and (name is None or not is_self):
            self.rest(self.instance_of(base) or holder, "box")

    def instance_of(self, base: ast.expr) -> Rest | None:
        owner = self.flow.program.class_of(base)
        return ("i", owner) if owner else None

    def plain_holder(self, base: ast.expr, by_attribute: bool) -> bool:
        program = self.flow.program
        owner = program.class_of(base)
        if owner is not None:
            return self.inert_class(owner)
        rest = program.rest_of(base)
        if rest is None:
            return False
        if self.flow.is_box(rest) or (rest, "box") in self.seen:
            return True
        last = rest[-1]
        if last in ("environ", "defaults", "param_groups"):
            return False
        if words.CONFIG_NAMES.match(last) and last not in ("params",):
            return True
        values = program.writes.get(rest, [])
        return not by_attribute and rest not in program.opaque and bool(values) and all(_is_new_dict(v) for v in values)

    def inert_class(self, name: str, depth: int = 0) -> bool:
        cls = self.flow.program.classes.get(name)
        if cls is None:
            return name in words.INERT_BASES
        return depth < 8 and all(self.inert_class(base, depth + 1) for base in cls.bases)

    def returned(self, node: ast.AST, form: Form) -> None:
        func = self.flow.program.func_of[node]
        if func is None or func.name == "<lambda>":
            self.acts(node, "returned")
        elif func.name in READS_BY_NAME and form in ("any", "box"):
            return  # what is read through it is counted where it is read, by its name
        else:
            self.rest(("r", func.name), form)

    def default_of(self, node: ast.AST, parent: ast.arguments, form: Form) -> None:
        self.acts(parent, "default of a parameter")

    def loops_over(self, loop: ast.For | ast.AsyncFor, form: Form) -> None:
        if form == "box":
            self.assign(loop.target, "any")
        elif form == "any" or form == "text":
            self.assign(loop.target, form)
        else:
            self.acts(loop, "decides how often a loop runs")

    def decides(self, branch: ast.If, form: Form) -> None:
        """A condition. It acts if anything but showing hangs on it; what is assigned under it depends on it."""
        if form in ("box", "any") or self.inert:  # `if v is not None` over all fields is plumbing, not a use of one
            return
        for statement in (*branch.body, *branch.orelse):
            self.hangs(statement, branch, form)

    def hangs(self, statement: ast.stmt, branch: ast.If, form: Form) -> None:
        match statement:
            case ast.Pass() | ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()):
                return
            case ast.Expr(value=ast.Call() as call) if self.shows(call):
                if self.saves(call):
                    self.acts(branch, "decides what is saved")
                self.out.decides_shows.append(call)
            case ast.If(body=body, orelse=orelse) | ast.For(body=body, orelse=orelse):
                if isinstance(statement, ast.For) and not self.quiet(statement.iter):
                    self.acts(branch, "decides what runs")
                for inner in (*body, *orelse):
                    self.hangs(inner, branch, form)
            case ast.With(body=body):
                for inner in body:
                    self.hangs(inner, branch, form)
            case ast.Assign(targets=targets, value=value) if self.quiet(value):
                for target in targets:
                    self.assign(target, form if form == "any" else "value")
            case ast.AnnAssign(target=target, value=value) if value is None or self.quiet(value):
                self.assign(target, form if form == "any" else "value")
            case ast.AugAssign(target=target, value=value) if self.quiet(value):
                self.assign(target, form if form == "any" else "value")
            case _:
                self.acts(branch, "decides what runs")

    def quiet(self, node: ast.expr) -> bool:
        """Whether evaluating an expression does nothing but compute a plain value."""
        return all(
            callee(call) in words.PASSES | words.TEXTS | words.VALUE_METHODS or self.shows(call)
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
        )

    # -- calls ----------------------------------------------------------------------------------

    def shows(self, call: ast.Call) -> bool:
        name = callee(call)
        if isinstance(call.func, ast.Name):
            return name in words.SHOWS and (name == "print" or not self.flow.program.functions.get(name))
        receiver = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        if name in words.LOG_METHODS and (words.LOGGER.search(receiver) or "logger" in receiver.lower()):
            return True
        if name in words.RECORD_METHODS and words.RECORDER.search(receiver):
            return True
        if receiver.endswith("wandb.config") or (name == "update" and "wandb" in receiver):
            return True
        return self.saves(call) and not self.flow.starts_programs

    def saves(self, call: ast.Call) -> bool:
        receiver = dotted_name(call.func.value) if isinstance(call.func, ast.Attribute) else ""
        return callee(call) in words.SAVES and bool(words.SAVERS.search(receiver))

    def names_the_place(self, node: ast.AST, call: ast.Call, keyword: ast.keyword | None) -> bool:
        """Whether an argument says where something is saved or recorded, and is not what is recorded."""
        if callee(call) == "init_trackers":
            return keyword.arg != "config" if keyword is not None else node in call.args[:1]
        return self.saves(call) and keyword is None and node in call.args[1:]

    def passed(self, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> tuple[ast.AST, Form] | None:
        program = self.flow.program
        name = callee(call)
        dotted = dotted_name(call.func)
        funcs, unseen = program.targets(call)
        if funcs and not unseen:
            for func in funcs:
                self.enter(node, call, keyword, func, form)
            return None
        if self.shows(call) or (name == "init" and "wandb" in dotted and keyword is not None and keyword.arg == "config"):
            if self.names_the_place(node, call, keyword):
                self.out.named.append(call)
                if form != "text":
                    self.acts(call, f"names what {dotted}() writes")
                return None
            self.out.shows.append(call)
            if name == "init" and form == "box":
                self.rest(("f", "config"), "box")  # comes back as wandb.config
            return None
        cls = program.class_called(call)
        if cls is not None and cls.is_dataclass:
            return self.into_dataclass(node, call, keyword, form)
        if name in ("setattr", "__setattr__") and len(call.args) >= 2:
            return self.setattr(node, call, form)
        if name in ("getattr", "hasattr"):
            return self.getattr(node, call, form)
        if name.endswith(("Error", "Exception", "Warning", "Exit")) or name == "exit":
            self.out.shows.append(call)
            return None
        if name == "tqdm" or name == "trange":
            return self.progress_bar(call, keyword, form)
        if form == "text" and name in words.NAMES_THINGS:
            self.out.named.append(call)
            return call, form
        if name in words.TEXTS:
            return call, "any" if form in ("any", "box") else "text"
        if form in ("box", "any") and (name in words.BOXES or (name in words.OMEGACONF_BOXES and "OmegaConf" in dotted)):
            return call, "box" if form == "box" else form
        if name == "update" and isinstance(call.func, ast.Attribute) and self.plain_holder(_holder(call.func.value), False):
            return self.updates(call, keyword, form)
        if name in ("append", "add", "extend", "insert") and isinstance(call.func, ast.Attribute):
            return self.appends(call, form)
        if name == "set_defaults":
            return None
        if name in ("get", "pop", "setdefault") and keyword is None and node in call.args[1:]:
            return call, form  # the default of a look-up
        if name in words.PASSES and not self.inert and form != "box":
            return call, form
        if name in words.BOXES and keyword is not None and keyword.arg is not None:
            self.rest(("f", keyword.arg), form)
            return call, "box"
        if name in ("isinstance", "len", "type", "id") and form == "box":
            return None
        if name in SPAWNS or name in CALLS_FIRST:
            return self.handed_to_spawn(node, call, keyword, form)
        if funcs:
            for func in funcs:
                self.enter(node, call, keyword, func, form)
        self.acts(call, f"given to {dotted or 'a call'}()")
        return None

    def enter(self, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, func: Func, form: Form) -> None:
        """Into the parameter of one of the program's own functions."""
        params = func.params
        kwarg = func.node.args.kwarg
        if keyword is not None and keyword.arg is not None:
            if keyword.arg in params or keyword.arg in func.keyword_only:
                self.rest(("v", func.scope, keyword.arg), form)
            elif kwarg is not None:
                self.rest(("f", keyword.arg), form)
                self.rest(("v", func.scope, kwarg.arg), "box")
            else:
                self.acts(call, "given to an unknown parameter")
        elif keyword is not None:  # f(**box)
            if form == "box":
                for name in (*params, *func.keyword_only):
                    self.flow.aliases[name].add(("v", func.scope, name))
                if kwarg is not None:
                    self.rest(("v", func.scope, kwarg.arg), "box")
            else:
                self.acts(call, "unpacked into a call")
        elif isinstance(node, ast.Starred) or any(isinstance(a, ast.Starred) for a in call.args):
            for name in params:
                self.rest(("v", func.scope, name), form)
            if func.node.args.vararg:
                self.rest(("v", func.scope, func.node.args.vararg.arg), form)
        else:
            position = call.args.index(node) if node in call.args else len(params)  # type: ignore[arg-type]
            if position < len(params):
                self.rest(("v", func.scope, params[position]), form)
            elif func.node.args.vararg:
                self.rest(("v", func.scope, func.node.args.vararg.arg), form)
            else:
                self.acts(call, f"given to {func.name}()")

    def into_dataclass(self, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> tuple[ast.AST, Form] | None:
        cls = self.flow.program.class_called(call)
        assert cls is not None
        if keyword is not None and keyword.arg is None:
            return (call, "box") if form == "box" else (self.acts(call, "unpacked") or None)
        if keyword is not None and keyword.arg is not None:
            self.rest(("f", keyword.arg), form)
        else:
            position = call.args.index(node) if node in call.args else 10**6  # type: ignore[arg-type]
            names = [f.target.id for f in cls.fields if isinstance(f.target, ast.Name)]
            if position >= len(names):
                self.acts(call, f"given to {cls.name}()")
                return None
            self.rest(("f", names[position]), form)
        self.rest(("i", cls.name), "box")
        return call, "box"

    def setattr(self, node: ast.AST, call: ast.Call, form: Form) -> tuple[ast.AST, Form] | None:
        base, key = call.args[0], call.args[1]
        if node is base:
            return None  # something is stored in the box; the box itself is not used
        if node is key:
            if form == "any":
                return None
            self.acts(call, "used as a name")
            return None
        self.store(base, constant_text(key), form, call)
        return None

    def getattr(self, node: ast.AST, call: ast.Call, form: Form) -> tuple[ast.AST, Form] | None:
        if call.args and node is call.args[0]:
            if form != "box":
                return call, form
            key = call.args[1] if len(call.args) > 1 else None
            if constant_text(key) is not None or callee(call) == "hasattr":
                return None
            if key is not None and self.given_only_constants(key):
                return None  # safe_get(cfg, "train.lr"): each name it is called with counts as read
            return call, "any"
        return call, form  # the default, or a name

    def given_only_constants(self, key: ast.expr) -> bool:
        """A name to look up that only ever comes from constant strings at the calls of this function."""
        program = self.flow.program
        func = program.func_of[key]
        if func is None or not isinstance(key, ast.Name):
            return False
        calls = program.calls.get(func.name, [])
        names = set(func.params)
        sources = {n.id for n in ast.walk(func.node) if isinstance(n, ast.Name)} & names
        if not sources or not calls:
            return False
        return all(any(constant_text(a) for a in (*c.args, *(k.value for k in c.keywords))) for c in calls)

    def progress_bar(self, call: ast.Call, keyword: ast.keyword | None, form: Form) -> tuple[ast.AST, Form] | None:
        if keyword is None or keyword.arg == "iterable":
            return call, form
        self.out.shows.append(call)
        return None

    def updates(self, call: ast.Call, keyword: ast.keyword | None, form: Form) -> None:
        assert isinstance(call.func, ast.Attribute)
        base = _holder(call.func.value)
        holder = self.flow.program.rest_of(base)
        if form == "value" and keyword is not None and keyword.arg:
            self.rest(("f", keyword.arg), form)
        elif form in ("value", "text"):
            self.acts(call, "merged into a dictionary")
            return
        if holder is not None:
            self.rest(self.instance_of(base) or holder, "box")

    def appends(self, call: ast.Call, form: Form) -> None:
        assert isinstance(call.func, ast.Attribute)
        holder = self.flow.program.rest_of(call.func.value)
        values = self.flow.program.writes.get(holder, []) if holder else []
        if holder is not None and holder[0] == "v" and values and all(isinstance(v, ast.List | ast.Set) for v in values):
            self.rest(holder, form)
        else:
            self.acts(call, "added to a collection")

    def spawned(self, call: ast.Call) -> list[Func]:
        """The program's functions that mp.spawn(f, ...), Process(target=f, ...) or partial(f, ...) will call."""
        given = next((k.value for k in call.keywords if k.arg in ("target", "fn")), call.args[0] if call.args else None)
        name = dotted_name(given).split(".")[-1] if given is not None else ""
        return self.flow.program.functions.get(name, [])

    def spawn_argument(self, node: ast.AST, parent: ast.Tuple | ast.List | ast.Set, up: ast.AST | None, form: Form) -> bool:
        """An element of `args=(n, cfg)`: into the parameter at its place."""
        call = self.flow.program.parent(up) if isinstance(up, ast.keyword) and up.arg == "args" else up
        if not isinstance(call, ast.Call) or callee(call) not in SPAWNS:
            return False
        funcs = self.spawned(call)
        position = parent.elts.index(node) + SPAWNS[callee(call)]  # type: ignore[arg-type]
        for func in funcs:
            if position < len(func.params):
                self.rest(("v", func.scope, func.params[position]), form)
            else:
                self.acts(call, "given to a process")
        return bool(funcs)

    def handed_to_spawn(self, node: ast.AST, call: ast.Call, keyword: ast.keyword | None, form: Form) -> None:
        funcs = self.spawned(call) if callee(call) in CALLS_FIRST else []
        for func in funcs:
            if keyword is not None:
                self.enter(node, call, keyword, func, form)
            elif node in call.args[1:] and call.args.index(node) - 1 < len(func.params):  # type: ignore[arg-type]
                self.rest(("v", func.scope, func.params[call.args.index(node) - 1]), form)  # type: ignore[arg-type]
            else:
                self.acts(call, "given to a call made later")
        if not funcs:
            self.acts(call, f"given to {dotted_name(call.func)}()")


def _base(node: ast.expr) -> ast.expr | None:
    """The object a field is read from; None where the read does not say."""
    match node:
        case ast.Attribute(value=base) | ast.Subscript(value=base):
            return base
        case ast.Call(func=ast.Attribute(value=base, attr="get" | "pop" | "setdefault")):
            return base
        case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[base, *_]):
            return base
    return None


def _is_callee(program: Program, node: ast.expr) -> bool:
    parent = program.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _holder(node: ast.expr) -> ast.expr:
    """`self.__dict__` and `vars(self)` hold the fields of `self`."""
    if isinstance(node, ast.Attribute) and node.attr == "__dict__":
        return node.value
    if isinstance(node, ast.Call) and callee(node) == "vars" and node.args:
        return node.args[0]
    return node


def _is_new_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict | ast.DictComp):
        return True
    return isinstance(value, ast.Call) and callee(value) in ("dict", "OrderedDict", "defaultdict", "copy", "deepcopy", "vars")


def _deed(node: ast.AST | None) -> str:
    match node:
        case ast.While():
            return "decides how long a loop runs"
        case ast.Assert():
            return "checked by an assertion"
        case ast.withitem():
            return "entered by a with statement"
    return type(node).__name__ if node is not None else "used"
