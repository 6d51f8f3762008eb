"""A value of a played program: what it was made of, where, and under which loops and conditions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

MAX_WALK = 4000  # values looked at for one question
ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Sub": operator.sub, "Mult": operator.mul, "Div": operator.truediv, "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
}  # fmt: skip
NUMBERS: dict[str, Callable[..., Any]] = {
    "int": int,
    "float": float,
    "max": max,
    "min": min,
    "round": round,
    "abs": abs,
}
# The same data in another place, type or container.
CARRIES = {
    "tensor", "as_tensor", "from_numpy", "asarray", "array", "astype", "numpy", "Tensor", "FloatTensor", "LongTensor", "stack",
    "reshape", "view", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "view_as", "tolist", "list", "tuple", "pin_memory",
    "float32", "int64", "expand", "repeat", "ascontiguousarray", "ravel", "Variable", "cat", "concatenate", "type_as", "values", "to_numpy",
    "swapaxes", "movedim", "rearrange", "t", "DataFrame", "Series", "constant", "convert_to_tensor", "batch",
}  # fmt: skip


@dataclass(eq=False, slots=True)
class Val:
    """One value. `args` are what it is made of, the object of a method first.

    op: const, call, net (a network applied), attr, item, slice, elem, batch, bin, unary, cmp, bool, phi (one of several),
    tuple, list, dict, comp, gen, obj (of a class of the program), func, bound, class, lib, space (options), param, free, text, index.
    """

    op: str
    name: str = ""
    args: tuple[Val, ...] = ()
    kwargs: dict[str, Val] = field(default_factory=dict)
    node: ast.AST | None = None
    origin: str = ""  # dotted, of a library
    data: Any = None
    fields: dict[str, Val] = field(default_factory=dict)
    items: list[Val] | None = None
    sure: bool = True  # False: the default of an option, which a command line may have changed
    loops: tuple[Any, ...] = ()
    guards: tuple[Any, ...] = ()
    no_grad: bool = False
    order: int = -1
    inside: tuple[str, ...] = ()  # functions entered
    sites: tuple[ast.AST, ...] = ()  # the calls that entered them

    def __repr__(self) -> str:  # short: values nest deeply
        return f"<{self.op} {self.name or self.data!r} @{getattr(self.node, 'lineno', '?')}>"

    def arg(self, name: str, position: int | None = None) -> Val | None:
        """An argument by its name or by its place (the object of a method has place 0)."""
        if name in self.kwargs:
            return self.kwargs[name]
        return self.args[position] if position is not None and len(self.args) > position else None


def const(value: Any, node: ast.AST | None = None, *, sure: bool = True) -> Val:
    return Val("const", data=value, node=node, sure=sure)


def phi(values: Iterable[Val], node: ast.AST | None = None) -> Val:
    """One of several values."""
    flat: dict[int, Val] = {}
    for value in values:
        for one in value.args if value.op == "phi" else (value,):
            flat[id(one)] = one
    found = list(flat.values())[:8]
    if len(found) == 1:
        return found[0]
    return Val("phi", args=tuple(found), node=node)


def choices(value: Val) -> tuple[Val, ...]:
    return value.args if value.op == "phi" else (value,)


def number(value: Val | None, depth: int = 0) -> float | None:
    """What a value is worth as a number, where that is known."""
    if value is None or depth > 20:
        return None
    if value.op == "const":
        good = isinstance(value.data, int | float) and not isinstance(value.data, bool)
        return value.data if good else None
    if value.op == "unary" and value.name == "USub":
        inner = number(value.args[0], depth + 1)
        return None if inner is None else -inner
    if value.op == "bin" and value.name in ARITHMETIC:
        return _folded(ARITHMETIC[value.name], [number(a, depth + 1) for a in value.args])
    if value.op == "bin" and value.name == "Pow":
        a, b = (number(x, depth + 1) for x in value.args)
        return (
            _folded(operator.pow, [a, b]) if a is not None and b is not None and abs(a) < 1e6 and abs(b) < 64 else None
        )
    if value.op == "call" and value.name in NUMBERS and value.args and not value.kwargs:
        return _folded(NUMBERS[value.name], [number(a, depth + 1) for a in value.args])
    if value.op == "phi":
        found = {number(a, depth + 1) for a in value.args}
        return found.pop() if len(found) == 1 else None
    return None


def _folded(function: Callable[..., Any], parts: list[float | None]) -> float | None:
    if any(p is None for p in parts):
        return None
    try:
        out = function(*parts)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return out if isinstance(out, int | float) else None


def text_of(value: Val | None) -> str | None:
    return value.data if value is not None and value.op == "const" and isinstance(value.data, str) else None


def is_sure(value: Val, depth: int = 0) -> bool:
    """Whether no command line can make this value another one."""
    return value.sure and (depth > 12 or all(is_sure(a, depth + 1) for a in value.args))


def plain(value: Val) -> Val:
    """A value without what only carries it: batches, tensors made of arrays, changes of shape."""
    for _ in range(40):
        if value.op == "batch" and value.args:
            value = value.args[0]
        elif value.op == "call" and value.name in CARRIES and value.args and value.args[0].op not in ("lib", "const"):
            first = value.args[0]
            if first.op in ("list", "tuple", "comp") and len(first.items or first.args) >= 1:
                several = first.items or first.args
                if len(several) > 1 and first.op != "comp":
                    return value
                first = several[0]
            value = first
        else:
            return value
    return value


def made_of(*starts: Val | None, stop: Callable[[Val], bool] | None = None, deep: bool = True) -> Iterator[Val]:
    """Everything values are made of, nearest first; not beyond what `stop` says. `deep`: into the networks that are applied."""
    seen: set[int] = set()
    queue = [s for s in starts if s is not None]
    for value in queue:
        if id(value) in seen or len(seen) > MAX_WALK:
            continue
        seen.add(id(value))
        yield value
        if stop is not None and stop(value):
            continue
        queue += below(value, deep)


def below(value: Val, deep: bool = True) -> list[Val]:
    """What a value is directly made of. A network is no part of its output's data; what its forward returns is."""
    if value.op == "net":
        inner = [value.data] if deep and isinstance(value.data, Val) else []
        return [*inner, *value.args[1:], *value.kwargs.values()]
    if value.op in ("obj", "func", "class", "lib", "bound"):
        return []
    out = [*value.args, *value.kwargs.values()]
    if value.op in ("list", "tuple"):
        out += value.items or []
    if value.op == "dict":
        out += value.fields.values()
    return out


def is_made_of(value: Val | None, what: Callable[[Val], bool], stop: Callable[[Val], bool] | None = None) -> Val | None:
    """The nearest part for which `what` holds."""
    return next((v for v in made_of(value, stop=stop) if what(v)), None)


def breaks_graph(value: Val) -> bool:
    """Whether no gradient goes through this value to what it is made of."""
    if value.op == "attr":
        return value.name in ("data", "shape", "ndim", "device", "dtype")
    if value.op == "call" and value.name == "sample":
        return bool(value.args) and "distributions" in value.args[0].origin
    return value.op in ("call", "net") and (value.no_grad or value.name in GRAPH_ENDS)


GRAPH_ENDS = {
    "detach",
    "item",
    "numpy",
    "tolist",
    "argmax",
    "multinomial",
    "stop_gradient",
    "detach_",
    "tensor",
    "randint",
    "round",
    "sign",
    "zeros_like",
    "ones_like",
    "full_like",
    "empty_like",
    "rand_like",
    "randn_like",
    "size",
    "len",
    "one_hot",
    "argmin",
    "argsort",
    "bincount",
    "floor",
    "ceil",
    "nonzero",
    "numel",
}
