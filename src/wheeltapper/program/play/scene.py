"""Where a play stands: names, loops, conditions, and every call that was made so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any

from wheeltapper.program.play.value import Val, choices, const, is_sure, number
from wheeltapper.program.program import Class, Func, Program
from wheeltapper.program.scripts import Script
from wheeltapper.settings.tree import ConfigTree

MAX_EVALUATED = 120_000  # expressions; about half a second
MAX_ENTERED = 14  # functions within functions
NETWORK_BASES = {
    "Module", "LightningModule", "PreTrainedModel", "Model", "Layer", "MessagePassing", "GenerationMixin", "ModuleList", "Sequential",
    "BaseFeaturesExtractor", "_Loss", "_WeightedLoss", "PyTorchModelHubMixin",
}  # fmt: skip


@dataclass(eq=False)
class Env:
    """The names of one function, module or comprehension."""

    script: Script
    parent: Env | None = None
    names: dict[str, Val] = field(default_factory=dict)
    free: set[str] = field(default_factory=set)  # declared global or nonlocal

    def holder(self, name: str) -> Env | None:
        env: Env | None = self
        while env is not None:
            if name in env.names:
                return env
            env = env.parent
        return None

    def bind(self, name: str, value: Val) -> None:
        if name in self.free and self.parent is not None:
            (self.parent.holder(name) or self._top()).names[name] = value
        else:
            self.names[name] = value

    def _top(self) -> Env:
        env = self
        while env.parent is not None:
            env = env.parent
        return env


@dataclass(eq=False)
class Frame:
    """One function that is being played."""

    func: Func | None
    me: Val | None = None
    site: ast.AST | None = None
    returns: list[Val] = field(default_factory=list)
    yields: list[Val] = field(default_factory=list)
    params: dict[str, Val] = field(default_factory=dict)


@dataclass(eq=False)
class Guard:
    """A condition that what happens now lies under."""

    test: Val
    taken: bool
    node: ast.AST
    depth: int


@dataclass(eq=False)
class Turn:
    """A loop that is being played."""

    node: ast.AST
    over: Val | None
    no_grad: bool


def _is_made(value: Val) -> bool:
    """Made by calling a class of a library: never None."""
    return value.op == "call" and value.name[:1].isupper()


class Scene:
    """State and the questions about it; the classes built on this play expressions, calls and statements."""

    def __init__(self, program: Program, given: dict[str, Any], config: ConfigTree | None) -> None:
        self.program = program
        self.given = given
        self.config = config
        self.calls: list[Val] = []
        self.dicts: list[Val] = []
        self.quotients: list[Val] = []
        self.subtractions: list[Val] = []  # without gradients: what samplers do
        self.loops: list[Turn] = []
        self.guards: list[Guard] = []
        self.frames: list[Frame] = [Frame(None)]
        self.no_grad = 0
        self.gradients = 0  # functions that gradients are taken of (jax), and that are being played
        self.through = 0  # sequences of layers that are being applied
        self.left = MAX_EVALUATED
        self.complete = True
        self.uncalled = False  # nothing is trained from the top: what others call was played, one piece after the other
        self.trusting = False  # defaults of options count as given
        self.entered: set[str] = set()
        self.modules: dict[str, Env] = {}
        self.by_tail: dict[str, Script] = {}
        self._counters: dict[ast.AST, tuple[str, ...]] = {}
        for script in reversed(program.scripts):
            for cut in range(len(script.module)):
                self.by_tail[".".join(script.module[cut:])] = script

    # -- making values --------------------------------------------------------------------------

    def note(self, value: Val) -> Val:
        """A call happened here and now."""
        value.loops = tuple(self.loops)
        value.guards = tuple(self.guards)
        value.no_grad = self.no_grad > 0
        value.order = len(self.calls)
        value.inside = (*(f.func.name for f in self.frames if f.func is not None), *("forward",) * (self.through > 0))
        value.sites = tuple(f.site for f in self.frames if f.site is not None)
        self.calls.append(value)
        return value

    def called(
        self, name: str, args: tuple[Val, ...], kwargs: dict[str, Val], node: ast.AST, origin: str = "", op: str = "call"
    ) -> Val:  # fmt: skip
        return self.note(Val(op, name, args, kwargs, node, origin or name))

    def counters(self, loop: ast.AST) -> tuple[str, ...]:
        """The names that a loop counts with: `step += 1`."""
        if loop not in self._counters:
            self._counters[loop] = tuple(
                n.target.id
                for n in ast.walk(loop)
                if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and isinstance(n.value, ast.Constant)
            )
        return self._counters[loop]

    # -- what classes and values are ------------------------------------------------------------

    def bases(self, name: str) -> set[str]:
        """A class of the program with all the names it is built on."""
        found: set[str] = set()
        queue = [name]
        for one in queue:
            if one in found or len(found) > 30:
                continue
            found.add(one)
            cls = self.program.classes.get(one)
            queue += cls.bases if cls is not None else ()
        return found

    def is_network_class(self, cls: Class) -> bool:
        return bool(self.bases(cls.name) & NETWORK_BASES)

    def truth(self, value: Val, depth: int = 0) -> bool | None:
        """Whether a condition holds whatever the command line says; None where it may be either."""
        if depth > 8:
            return None
        if value.op == "const":
            return bool(value.data) if value.sure or self.trusting else None
        if value.op == "unary" and value.name == "Not":
            inner = self.truth(value.args[0], depth + 1)
            return None if inner is None else not inner
        if value.op == "cmp" and len(value.args) == 2:
            return self._compared(value)
        if value.op == "bool":
            return self._joined(value, depth)
        if value.op in ("func", "class", "obj", "bound"):
            return True
        found = number(value)
        return bool(found) if found is not None and (self.trusting or is_sure(value)) else None

    def flips(self, test: ast.expr) -> bool:
        """`if self.ready:` in a loop, where the program sets the field to True and to False: known at the first turn only."""
        inner = test.operand if isinstance(test, ast.UnaryOp) else test
        if not isinstance(inner, ast.Attribute):
            return False
        written = self.program.writes.get(("f", inner.attr), [])
        return len({w.value for w in written if isinstance(w, ast.Constant) and isinstance(w.value, bool)}) > 1

    def _compared(self, value: Val) -> bool | None:
        a, b = value.args
        if value.name in ("Is", "IsNot") and b.op == "const" and b.data is None:
            known = {
                c.op == "const" and c.data is None
                for c in choices(a)
                if c.sure and (c.op in ("const", "obj", "func", "net", "list") or _is_made(c))
            }
            if len(known) == 1 and len(choices(a)) == 1:
                return known.pop() == (value.name == "Is")
            return None
        if not self.trusting and not (is_sure(a) and is_sure(b)):
            return None
        left, right = (c.data if c.op == "const" else number(c) for c in (a, b))
        if left is None or right is None:
            return None
        try:
            return {
                "Eq": left == right, "NotEq": left != right, "Is": left is right, "IsNot": left is not right,
                "In": None, "NotIn": None,
            }[value.name] if value.name in ("Eq", "NotEq", "Is", "IsNot", "In", "NotIn") else {
                "Lt": left < right, "LtE": left <= right, "Gt": left > right, "GtE": left >= right,
            }[value.name]  # fmt: skip
        except TypeError:
            return None

    def _joined(self, value: Val, depth: int) -> bool | None:
        parts = [self.truth(a, depth + 1) for a in value.args]
        if value.name == "And":
            return False if False in parts else True if all(parts) else None
        return True if True in parts else False if all(p is False for p in parts) else None

    # -- what the classes built on this do ------------------------------------------------------

    def enter(
        self, func: Func, args: tuple[Val, ...], kwargs: dict[str, Val], node: ast.AST, me: Val | None = None, env: Env | None = None
    ) -> Val:  # fmt: skip
        raise NotImplementedError

    def apply(self, thing: Val, args: tuple[Val, ...], kwargs: dict[str, Val], node: ast.AST) -> Val:
        raise NotImplementedError

    def option(self, name: str, default: Val, node: ast.AST) -> Val:
        """An option of the command line: what was given, else its default."""
        if name in self.given:
            return const(self.given[name], node)
        if default.op == "const":
            return Val("const", data=default.data, node=default.node or node, sure=False)
        if default.items is not None:
            return default
        return Val("free", name, node=node, sure=False)
