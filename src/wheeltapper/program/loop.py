"""The training loop as the order of its events: backward, unscale, clip, step, schedule, average, evaluate.

The program is walked from where it starts, and its own functions are entered where they are called,
so that a `scheduler.step()` in a method called from the batch loop is seen inside the batch loop.
Each event keeps the loops and conditions it lies under. Nothing is executed and both branches of
every condition are walked.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import Literal

from wheeltapper.program.eventful import CLIPS, eventful
from wheeltapper.program.hand_averages import HandAverage
from wheeltapper.program.hand_schedules import Rule
from wheeltapper.program.index import registers, starts
from wheeltapper.program.objects import Part, kind_of
from wheeltapper.program.program import Func, Program, callee, dotted_name
from wheeltapper.program.scripts import children

What = Literal[
    "backward", "step", "scaler-step", "scaler-update", "unscale", "clip", "zero_grad", "schedule", "ema", "eval", "train",
    "set_epoch", "save", "load", "make", "average", "rate",
]  # fmt: skip
MAX_DEPTH = 12
MAX_EVENTS = 5000
MAX_ENTERED = 4000  # functions entered in one walk; a program that calls itself in circles ends here
NETWORK = re.compile(
    r"model|net|gen|disc|critic|encod|decod|backbone|head|actor|policy|student|teacher|ema|module|^[GDE]$|^m$", re.I
)
OWN_CLIP = re.compile(r"accelerator|fabric|engine|strategy|FSDP|self\.model$", re.I)


@dataclass(frozen=True, eq=False)
class Guard:
    """One condition an event lies under: the test, and whether the event is in the branch taken when true."""

    node: ast.If
    taken: bool
    depth: int  # loops around the condition


@dataclass(frozen=True, eq=False)
class Event:
    what: What
    name: str  # of the object, as the caller that made it would call it
    node: ast.Call
    loops: tuple[ast.AST, ...]
    guards: tuple[Guard, ...]
    no_grad: bool
    order: int
    functions: tuple[str, ...]  # the functions entered to get here
    argument: str = ""  # the first argument, by name


@dataclass
class Loop:
    """The events of one program, in the order they run."""

    events: list[Event] = field(default_factory=list)
    walked: dict[ast.AST, bool] = field(default_factory=dict)  # every loop, and whether gradients are ever off in it
    scopes: set[str] = field(default_factory=set)  # functions the walk entered
    complete: bool = True  # False: cut short, or a call we could not see into was handed an optimizer

    def of(self, *whats: What) -> list[Event]:
        return [e for e in self.events if e.what in whats]

    @property
    def backwards(self) -> list[Event]:
        return [e for e in self.of("backward") if e.loops]

    def inside(self, loop: ast.AST, *whats: What) -> list[Event]:
        return [e for e in self.of(*whats) if loop in e.loops]

    @property
    def batch_loops(self) -> list[ast.AST]:
        """The innermost loop around each backward pass, once each."""
        return list(dict.fromkeys(e.loops[-1] for e in self.backwards))


def loop_of(program: Program, parts: list[Part], averages: list[HandAverage], rules: list[Rule]) -> Loop:
    walker = _Walker(program, parts, averages, rules)
    walker.block(program.entry.tree.body, {}, (), ())
    if not walker.loop.backwards:
        _walk_uncalled(program, walker, decorated=starts(program.entry))
    return walker.loop


def _walk_uncalled(program: Program, walker: _Walker, decorated: bool) -> None:
    """Nothing trains from the top of the entry: start at functions that nobody in the program calls.

    `decorated`: only those handed to something by a decorator (`@app.command()`), since the entry does start.
    """
    reaching = {func for call in program.calls.get("backward", []) if (func := program.func_of[call])}
    grown = True
    while grown:
        names = {f.name for f in reaching}
        more = {
            func
            for name in names
            for call in program.calls.get(name, [])
            if (func := program.func_of[call]) and func not in reaching
        }
        grown = bool(more)
        reaching |= more
    for func in sorted(reaching, key=lambda f: f.scope):
        given = any(registers(d) for d in getattr(func.node, "decorator_list", []))
        if not program.calls.get(func.name) and (given or not decorated):
            walker.function(func, {}, (), ())


def _once(loop: ast.For | ast.AsyncFor) -> bool:
    """`for _ in range(1)` is no loop."""
    call = loop.iter
    return (
        isinstance(call, ast.Call) and callee(call) == "range" and [getattr(a, "value", None) for a in call.args] == [1]
    )


def _collect(node: ast.AST, loops: tuple[ast.AST, ...], out: list[tuple[ast.Call, tuple[ast.AST, ...]]]) -> None:
    if isinstance(node, ast.Lambda):
        return
    inner = loops
    if isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
        inner = (*loops, node)
    for child in children(node):
        _collect(child, inner, out)
    if isinstance(node, ast.Call):
        out.append((node, loops))


class _Walker:
    def __init__(self, program: Program, parts: list[Part], averages: list[HandAverage], rules: list[Rule]) -> None:
        self.program = program
        self.parts = parts
        self.made = {part.call for part in parts}
        self.loop = Loop()
        self.stack: list[Func] = []
        self.no_grad = 0
        self.entered = 0
        self.cut = 0  # functions not entered because they lie too deep
        self.barren: set[tuple[str, frozenset[tuple[str, str]], bool]] = set()  # walked in full, and nothing happened
        self.rates = {call for rule in rules for call in program.calls.get(rule.func.name, [])}
        makers = {program.func_of[call] for call in (*self.made, *self.rates)} | {average.func for average in averages}
        self.eventful = eventful(program, makers)
        self.averages = {average.loop: mark for average in averages if (mark := average.mark) is not None}
        self.calls_inside: dict[ast.expr, list[tuple[ast.Call, tuple[ast.AST, ...]]]] = {}

    # -- statements -----------------------------------------------------------------------------

    def function(
        self, func: Func, names: dict[str, str], loops: tuple[ast.AST, ...], guards: tuple[Guard, ...]
    ) -> None:
        way = (func.scope, frozenset(names.items()), self.no_grad > 0)
        if func.scope not in self.eventful or way in self.barren:
            return
        self.entered += 1
        if func in self.stack or len(self.stack) >= MAX_DEPTH or self.entered > MAX_ENTERED:
            self.loop.complete = self.loop.complete and self.entered <= MAX_ENTERED
            self.cut += func not in self.stack
            return
        before = self.cut, len(self.loop.events)
        self.stack.append(func)
        self.loop.scopes.add(func.scope)
        quiet = any(
            "no_grad" in ast.unparse(d) or "inference_mode" in ast.unparse(d)
            for d in getattr(func.node, "decorator_list", [])
        )
        self.no_grad += quiet
        body = func.node.body
        if isinstance(body, list):
            self.block(body, names, loops, guards)
        else:
            self.expression(body, names, loops, guards)
        self.no_grad -= quiet
        self.stack.pop()
        if before == (self.cut, len(self.loop.events)):
            self.barren.add(way)

    def block(
        self, body: list[ast.stmt], names: dict[str, str], loops: tuple[ast.AST, ...], guards: tuple[Guard, ...]
    ) -> None:
        for statement in body:
            if len(self.loop.events) > MAX_EVENTS:
                self.loop.complete = False
                return
            self.statement(statement, names, loops, guards)

    def statement(
        self, node: ast.stmt, names: dict[str, str], loops: tuple[ast.AST, ...], guards: tuple[Guard, ...]
    ) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Import() | ast.ImportFrom():
                return
            case ast.For() | ast.AsyncFor():
                self.expression(node.iter, names, loops, guards)
                if isinstance(node, ast.For) and node in self.averages:
                    self.note("average", "", self.averages[node], loops, guards)
                self.loop.walked[node] = self.loop.walked.get(node, False) or self.no_grad > 0
                inner = loops if _once(node) else (*loops, node)
                self.block(node.body, names, inner, guards)
                self.block(node.orelse, names, loops, guards)
            case ast.While():
                self.expression(node.test, names, (*loops, node), guards)
                self.block(node.body, names, (*loops, node), guards)
                self.block(node.orelse, names, loops, guards)
            case ast.If():
                self.expression(node.test, names, loops, guards)
                self.block(node.body, names, loops, (*guards, Guard(node, True, len(loops))))
                self.block(node.orelse, names, loops, (*guards, Guard(node, False, len(loops))))
            case ast.With() | ast.AsyncWith():
                quiet = any(re.search(r"no_grad|inference_mode", ast.unparse(item.context_expr)) for item in node.items)
                for item in node.items:
                    self.expression(item.context_expr, names, loops, guards)
                self.no_grad += quiet
                self.block(node.body, names, loops, guards)
                self.no_grad -= quiet
            case ast.Try():
                for part in (node.body, *(h.body for h in node.handlers), node.orelse, node.finalbody):
                    self.block(part, names, loops, guards)
            case ast.Match():
                for case in node.cases:
                    self.block(case.body, names, loops, guards)
            case _:
                for child in children(node):
                    if isinstance(child, ast.expr):
                        self.expression(child, names, loops, guards)

    def expression(
        self, node: ast.expr, names: dict[str, str], loops: tuple[ast.AST, ...], guards: tuple[Guard, ...]
    ) -> None:
        for call, inner in self.calls_in(node):
            self.call(call, names, (*loops, *inner), guards)

    def calls_in(self, node: ast.expr) -> list[tuple[ast.Call, tuple[ast.AST, ...]]]:
        """Calls inside an expression, innermost first, as Python would make them, with the comprehensions around each.

        Remembered: a function is walked once for every way that leads to it.
        """
        if node not in self.calls_inside:
            found: list[tuple[ast.Call, tuple[ast.AST, ...]]] = []
            _collect(node, (), found)
            self.calls_inside[node] = found
        return self.calls_inside[node]

    # -- calls ----------------------------------------------------------------------------------

    def call(
        self, call: ast.Call, names: dict[str, str], loops: tuple[ast.AST, ...], guards: tuple[Guard, ...]
    ) -> None:
        receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
        name = self.name(receiver, names) if receiver is not None else ""
        what = self.what(call, name)
        if what in ("step", "scaler-step"):
            for given in call.args:  # a closure: LBFGS, SAM
                if isinstance(given, ast.Name):
                    for func in self.program.functions.get(given.id, [])[:1]:
                        self.function(func, {}, loops, guards)
        if what is not None:
            self.note(what, name, call, loops, guards, self.name(call.args[0], names) if call.args else "")
        funcs, unseen = self.program.targets(call)
        if what is not None and unseen:
            return  # the library's own method, even if a class of the program has one of that name
        starts_it = callee(call) == "run" and self.program.origin(call.func).startswith("absl.")
        if not funcs and (starts_it or callee(call) in ("spawn", "Process", "launch")):
            handed = [*call.args, *(k.value for k in call.keywords if k.arg in ("target", "fn"))]
            funcs = [f for a in handed for f in self.program.functions.get(dotted_name(a).split(".")[-1], [])]
        for func in funcs[:4]:
            self.function(func, self.bind(call, func, names), loops, guards)

    def note(
        self, what: What, name: str, call: ast.Call, loops: tuple[ast.AST, ...], guards: tuple[Guard, ...], first: str = ""
    ) -> None:  # fmt: skip
        entered = tuple(f.name for f in self.stack)
        self.loop.events.append(
            Event(what, name, call, loops, guards, self.no_grad > 0, len(self.loop.events), entered, first)
        )

    def bind(self, call: ast.Call, func: Func, names: dict[str, str]) -> dict[str, str]:
        """What the caller calls each argument, under the name of the parameter."""
        bound = {}
        for param, value in zip(func.params, call.args, strict=False):
            bound[param] = self.name(value, names)
        for keyword in call.keywords:
            if keyword.arg:
                bound[keyword.arg] = self.name(keyword.value, names)
        return {k: v for k, v in bound.items() if v}

    def name(self, node: ast.expr | None, names: dict[str, str]) -> str:
        """The last component of the name of an object, with parameters traced back to the caller's name."""
        match node:
            case ast.Name(id=name):
                return names.get(name, name)
            case ast.Attribute(attr="module" | "_orig_mod", value=value):
                return self.name(value, names)
            case ast.Attribute(attr=attr):
                return attr
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                return key
            case ast.Subscript(value=value):
                return self.name(value, names)
            case ast.Call(func=func):
                return self.name(func, names)
        return ""

    def what(self, call: ast.Call, name: str) -> What | None:
        method = callee(call)
        if call in self.made:
            return "make"
        if call in self.rates:
            return "rate"
        if method in CLIPS or (method == "clip_gradients" and call.args):
            return "clip"
        if not isinstance(call.func, ast.Attribute):
            return None
        if method in ("backward", "manual_backward"):
            return "backward"
        if method == "unscale_":
            return "unscale"
        if method == "zero_grad":
            return "zero_grad"
        if method == "set_epoch":
            return "set_epoch"
        if method == "eval" and not call.args and self.is_network(call, name):
            return "eval"
        if method == "train" and len(call.args) <= 1 and not call.keywords and self.is_network(call, name):
            return (
                "eval"
                if call.args and isinstance(call.args[0], ast.Constant) and call.args[0].value is False
                else "train"
            )
        if method in ("load_state_dict", "load_checkpoint", "restore"):
            return "load"
        if method == "save" and "torch" in dotted_name(call.func):
            return "save"
        return self.stepping(call, method, name)

    def is_network(self, call: ast.Call, name: str) -> bool:
        """Whether `x.train()` switches a network's mode, or runs a method of that name of the program's own."""
        funcs, unseen = self.program.targets(call)
        return not funcs or (unseen and bool(NETWORK.search(name)))

    def stepping(self, call: ast.Call, method: str, name: str) -> What | None:
        kind = kind_of(name, self.parts)
        if method in ("step", "step_update"):
            if kind == "scaler" or (call.args and kind_of(self.name(call.args[0], {}), self.parts) == "optimizer"):
                return "scaler-step"
            if kind == "ema":
                return "ema"
            return "schedule" if kind == "scheduler" else "step" if kind in ("optimizer", "engine") else None
        if method in ("update", "update_parameters") and kind == "ema":
            return "ema"
        if method == "update" and kind == "scaler":
            return "scaler-update"
        return None
