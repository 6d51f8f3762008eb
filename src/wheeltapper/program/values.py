"""What an expression is worth, as far as the code and what was given to it say; else None.

Used for arithmetic (a schedule's length, a batch) and to tell whether two expressions are the same
quantity. A name counts only if it is written once; anything that could change it makes it unknown.
"""

from __future__ import annotations

import ast
import math
import operator
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from wheeltapper.program.index import parameter_default
from wheeltapper.program.launch import Given
from wheeltapper.program.options import ABSENT, Option
from wheeltapper.program.program import Program, Rest, callee, constant_text, dotted_name
from wheeltapper.settings.tree import Leaf

MAX_DEPTH = 12
ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "int": int, "float": float, "max": max, "min": min, "round": round, "abs": abs, "ceil": math.ceil, "floor": math.floor,
}  # fmt: skip
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip


@dataclass(eq=False)
class Values:
    program: Program
    given: dict[str, Given]  # by option name: command line, config file
    options: dict[str, Option] = field(default_factory=dict)
    leaves: tuple[Leaf, ...] = ()  # of the config file the program loads
    _busy: set[ast.AST] = field(default_factory=set)

    def number(self, node: ast.expr | None) -> float | None:
        value = self.value(node) if node is not None else None
        return value if isinstance(value, int | float) and not isinstance(value, bool) else None

    def option(self, name: str) -> Any:
        """The value an option has: given, else its default; None if unknown."""
        if name in self.given:
            return self.given[name].value
        option = self.options.get(name)
        if option is not None:
            return None if option.default is ABSENT else option.default
        leaf = self.leaf((name,))
        return leaf.value if leaf is not None else None

    def leaf(self, names: tuple[str, ...]) -> Leaf | None:
        """The config leaf a chain of names reads: `cfg.training.accum` -> the leaf training.accum."""
        found = [leaf for leaf in self.leaves if leaf.path and str(leaf.path[-1]) == names[-1]]
        if len(found) > 1 and len(names) > 1:
            found = [leaf for leaf in found if len(leaf.path) > 1 and str(leaf.path[-2]) == names[-2]]
        return found[0] if len(found) == 1 else None

    def value(self, node: ast.expr, depth: int = 0) -> Any:
        if depth > MAX_DEPTH:
            return None
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                number = self.value(inner, depth + 1)
                return -number if isinstance(number, int | float) else None
            case ast.BinOp(left=left, op=op, right=right) if type(op) in ARITHMETIC:
                a, b = self.value(left, depth + 1), self.value(right, depth + 1)
                if not isinstance(a, int | float) or not isinstance(b, int | float):
                    return None
                try:
                    return ARITHMETIC[type(op)](a, b)
                except (ZeroDivisionError, OverflowError):
                    return None
            case ast.IfExp(test=test, body=body, orelse=orelse):
                chosen = self.truth(test, depth + 1)
                if chosen is not None:
                    return self.value(body if chosen else orelse, depth + 1)
                a, b = self.value(body, depth + 1), self.value(orelse, depth + 1)
                return a if a == b else None
            case ast.Call() if callee(node) in FUNCTIONS and not node.keywords and node.args:
                parts = [self.value(a, depth + 1) for a in node.args]
                if all(isinstance(p, int | float) for p in parts):
                    try:
                        return FUNCTIONS[callee(node)](*parts)
                    except (TypeError, ValueError, OverflowError):
                        return None
                return None
        rest, fallback = self.read(node)
        return self.resting(node, rest, fallback, depth) if rest is not None else None

    def truth(self, node: ast.expr, depth: int = 0) -> bool | None:
        """Whether a condition holds, where its parts are known."""
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARE:
            a, b = self.value(node.left, depth + 1), self.value(node.comparators[0], depth + 1)
            if a is None or b is None:
                return None
            try:
                return COMPARE[type(node.ops[0])](a, b)
            except TypeError:
                return None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.truth(node.operand, depth + 1)
            return None if inner is None else not inner
        value = self.value(node, depth + 1)
        return bool(value) if isinstance(value, int | float | str) else None

    def read(self, node: ast.expr) -> tuple[Rest | None, ast.expr | None]:
        """The rest an expression reads, and the default it falls back to."""
        if isinstance(node, ast.Call):
            name = callee(node)
            if name in ("get", "pop") and node.args and (key := constant_text(node.args[0])) is not None:
                return ("f", key), node.args[1] if len(node.args) > 1 else None
            if name == "getattr" and len(node.args) > 1 and (key := constant_text(node.args[1])) is not None:
                return ("f", key), node.args[2] if len(node.args) > 2 else None
            texts = [t for a in node.args if (t := constant_text(a)) is not None]
            if len(texts) == 1 and self.program.targets(node)[0] and "." in texts[0]:
                return ("f", texts[0].split(".")[-1]), node.args[-1]  # safe_get(cfg, "train.lr", 1e-4)
            return None, None
        return self.program.rest_of(node), None

    def sources(self, rest: Rest, node: ast.expr | None = None) -> list[ast.expr] | None:
        """The expressions a name is written from, copies of itself left out; None if not all are known.

        `node` is the read: `self.x` is not written by `args.x = ...`, nor `config["x"]` by `self.x = ...`.
        """
        if rest in self.program.opaque:
            return None
        out = []
        for value in self.program.writes.get(rest, []):
            if isinstance(value, ast.Constant) and value.value is None:
                continue
            if rest[0] == "f" and not self._same_holder(value, node):
                continue
            source, _ = self.read(value)
            if source is not None and source[-1] == rest[-1] and (source[0] == "f" or source == rest):
                if rest[0] == "v":
                    out.append(value)
                continue
            if not self.ruled_out(value):
                out.append(value)
        return out

    def _same_holder(self, value: ast.expr, node: ast.expr | None) -> bool:
        holder = self.program.written_on.get(value)
        if node is None:
            return True
        if isinstance(node, ast.Attribute):
            base = dotted_name(node.value).split(".")[-1]
            return holder is None or (holder == "self") == (base == "self")
        return holder != "self"

    def ruled_out(self, node: ast.AST) -> bool:
        """Whether a node lies under a condition known to be false."""
        up = self.program.parent(node)
        while up is not None and not isinstance(up, ast.FunctionDef | ast.AsyncFunctionDef):
            if isinstance(up, ast.If) and up not in self._busy and node is not up.test:
                self._busy.add(up)
                truth = self.truth(up.test)
                self._busy.discard(up)
                if truth is not None and truth != (node in up.body):
                    return True
            node, up = up, self.program.parent(up)
        return False

    def resting(self, node: ast.expr, rest: Rest, fallback: ast.expr | None, depth: int) -> Any:
        sources = self.sources(rest, node)
        if sources is None:
            return None
        name = rest[-1]
        if rest[0] == "f" and (name in self.given or name in self.options):
            return None if sources else self.option(name)
        if rest[0] == "f" and not sources and (leaf := self.leaf(self.chain(node))) is not None:
            return leaf.value
        if len(sources) == 1:
            return self.value(sources[0], depth + 1)
        if sources:
            values = [self.value(s, depth + 1) for s in sources]
            return values[0] if all(v is not None and v == values[0] for v in values) else None
        if rest[0] == "v":
            default = self.default(rest)
            return self.value(default, depth + 1) if default is not None else None
        return self.value(fallback, depth + 1) if fallback is not None else None

    def chain(self, node: ast.expr) -> tuple[str, ...]:
        """The names of a read, outermost first: `self.cfg["training"].accum` -> ("cfg", "training", "accum")."""
        names: list[str] = []
        while True:
            rest, _ = self.read(node)
            if rest is None or rest[0] != "f":
                return tuple(reversed(names)) or ("",)
            if isinstance(node, ast.Call) and any("." in (constant_text(a) or "") for a in node.args):
                dotted = next(t for a in node.args if (t := constant_text(a)) and "." in t)
                return tuple(dotted.split("."))
            names.append(rest[-1])
            match node:
                case ast.Attribute(value=value) | ast.Subscript(value=value):
                    node = value
                case ast.Call(func=ast.Attribute(value=value, attr="get" | "pop")):
                    node = value
                case ast.Call(args=[first, *_]):
                    node = first
                case _:
                    return tuple(reversed(names))

    def default(self, rest: Rest) -> ast.expr | None:
        func = self.program.scopes.get(rest[1])
        return parameter_default(func, rest[2]) if func is not None else None

    # -- sameness -------------------------------------------------------------------------------

    def factors(self, node: ast.expr) -> Counter[str]:
        """A product as counted factors; division counts down. `a * len(b) // c` -> {a: 1, len(b): 1, c: -1}."""
        out: Counter[str] = Counter()
        self._factors(node, 1, out, 0)
        return Counter({k: v for k, v in out.items() if v})

    def _factors(self, node: ast.expr, sign: int, out: Counter[str], depth: int) -> None:
        match node:
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                self._factors(left, sign, out, depth + 1)
                self._factors(right, sign, out, depth + 1)
            case ast.BinOp(left=left, op=ast.Div() | ast.FloorDiv(), right=right):
                self._factors(left, sign, out, depth + 1)
                self._factors(right, -sign, out, depth + 1)
            case ast.Call(func=ast.Name(id="int" | "float" | "round"), args=[inner]):
                self._factors(inner, sign, out, depth + 1)
            case ast.Call(args=[inner]) if callee(node) in ("ceil", "floor"):
                self._factors(inner, sign, out, depth + 1)
            case ast.Call(func=ast.Name(id="len"), args=[inner]):
                out[f"len({dotted_name(inner).split('.')[-1]})"] += sign
            case ast.Constant(value=value):
                if value != 1:
                    out[repr(value)] += sign
            case _:
                rest, _ = self.read(node)
                sources = self.sources(rest, node) if rest is not None else None
                if rest is not None and sources is not None and len(sources) == 1 and depth < MAX_DEPTH:
                    self._factors(sources[0], sign, out, depth + 1)
                elif rest is not None:
                    out[rest[-1]] += sign
                else:
                    out[ast.unparse(node)] += sign
