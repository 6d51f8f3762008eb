"""Climbing from an expression that carries a value to what is done with it, one parent at a time."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from wheeltapper.program import handing
from wheeltapper.program import vocabulary as words
from wheeltapper.program.program import Program, Rest, callee, constant_text
from wheeltapper.program.trace import Form, Step, Trace

if TYPE_CHECKING:
    from wheeltapper.program.flow import Flow

# Methods that look a name up in their own object: what they return is counted where the name is read.
READS_BY_NAME = {
    "__getitem__", "__getattr__", "__getattribute__", "get", "__iter__", "__contains__", "__repr__", "__str__", "__len__", "__eq__",
}  # fmt: skip


@dataclass(eq=False)
class Walk:
    """One walk: what it has seen, what it still has to read, and where the value went."""

    flow: Flow
    inert: frozenset[str]
    whole: bool = False  # follow boxes here instead of asking for their cached trace
    to_first_act: bool = False
    done: bool = False
    out: Trace = field(default_factory=Trace)
    queue: list[tuple[Rest, Form]] = field(default_factory=list)
    seen: set[tuple[Rest, Form]] = field(default_factory=set)
    climbed: set[tuple[ast.AST, Form]] = field(default_factory=set)

    def run(self, starts: Sequence[tuple[ast.expr, Form]], rests: Sequence[tuple[Rest, Form]]) -> Trace:
        for rest, form in rests:
            self.rest(rest, form)
        for node, form in starts:
            self.climb(node, form)
        while self.queue and not self.done:
            rest, form = self.queue.pop()
            if form == "box" and not self.whole and not self.inert:
                done = self.flow.box_trace(rest)
                for where, why in done.acts:
                    self.acts(where, why)
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
            if self.done:
                return
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
        methods = all(func.owner for func in program.functions[name])
        ours = [c for c in calls if not (methods and isinstance(c.func, ast.Name))]  # not an imported function of that name
        if not ours and not loose:
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
        self.done = self.done or (self.to_first_act and not why.startswith("decides"))

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

    def step(self, node: ast.AST, parent: ast.AST | None, form: Form) -> Step:
        match parent:
            case ast.Attribute():
                return self.attribute(parent, form)
            case ast.Subscript():
                return self.subscript(node, parent, form)
            case ast.Call():
                if parent.func is node:
                    self.acts(parent, "called")
                    return None
                return handing.passed(self, node, parent, None, form)
            case ast.keyword():
                call = self.flow.program.parent(parent)
                if isinstance(call, ast.Call):
                    return handing.passed(self, node, call, parent, form)
                self.acts(parent, "class keyword")
                return None
            case ast.JoinedStr() | ast.FormattedValue():
                return parent, "any" if form in ("any", "box") else "text"
            case (
                ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod()) | ast.BinOp(left=ast.JoinedStr(), op=ast.Mod())
            ):
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
                handing.decides(self, parent, form)
            case ast.For() | ast.AsyncFor():
                self.loops_over(parent, form)
            case ast.Expr() | ast.Delete() | ast.Global():
                pass
            case ast.Raise():
                self.out.shows.append(parent)
            case ast.arguments():
                self.acts(parent, "default of a parameter")
            case _:
                self.acts(parent or node, deed(parent))
        return None

    def attribute(self, parent: ast.Attribute, form: Form) -> Step:
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

    def box_attribute(self, parent: ast.Attribute, call: ast.AST | None) -> Step:
        program = self.flow.program
        if call is None:
            return (parent, "box") if parent.attr in ("__dict__", "_content") else None
        assert isinstance(call, ast.Call)
        if parent.attr in words.BOX_METHODS:
            return call, "box"
        if parent.attr in words.BOX_SILENT or (
            parent.attr == "get" and call.args and constant_text(call.args[0]) is not None
        ):
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

    def subscript(self, node: ast.AST, parent: ast.Subscript, form: Form) -> Step:
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

    def into_sequence(self, node: ast.AST, parent: ast.Tuple | ast.List | ast.Set, form: Form) -> Step:
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
        if isinstance(node, ast.expr) and handing.spawn_argument(self, node, parent, up, form):
            return None
        return parent, form

    def into_dict(self, node: ast.AST, parent: ast.Dict, form: Form) -> tuple[ast.AST, Form]:
        for key, value in zip(parent.keys, parent.values, strict=True):
            if value is node and (text := constant_text(key)) is not None:
                self.rest(self.flow.owned(text, parent), form)
        return parent, "box"

    def comprehension(self, node: ast.AST, parent: ast.comprehension, form: Form) -> Step:
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
        elif func.name in READS_BY_NAME and form in ("any", "box") and self.is_config_class(func.owner):
            return  # what is read through it is counted where it is read, by its name
        else:
            self.rest(("r", func.name), form)

    def is_config_class(self, name: str | None) -> bool:
        """Whether instances of a class hold the configuration (and a data set's `__getitem__` is another thing)."""
        return name is not None and ((("i", name), "box") in self.seen or ("i", name) in self.flow.boxes)

    def loops_over(self, loop: ast.For | ast.AsyncFor, form: Form) -> None:
        if form == "box":
            self.assign(loop.target, "any")
        elif form == "any" or form == "text":
            self.assign(loop.target, form)
        else:
            self.acts(loop, "decides how often a loop runs")


def _is_callee(program: Program, node: ast.expr) -> bool:
    parent = program.parent(node)
    return isinstance(parent, ast.Call) and parent.func is node


def _is_new_dict(value: ast.expr) -> bool:
    if isinstance(value, ast.Dict | ast.DictComp):
        return True
    return isinstance(value, ast.Call) and callee(value) in (
        "dict",
        "OrderedDict",
        "defaultdict",
        "copy",
        "deepcopy",
        "vars",
    )


def deed(node: ast.AST | None) -> str:
    match node:
        case ast.While():
            return "decides how long a loop runs"
        case ast.Assert():
            return "checked by an assertion"
        case ast.withitem():
            return "entered by a with statement"
    return type(node).__name__ if node is not None else "used"
