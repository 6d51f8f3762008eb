"""Formulas of a played program, worked out with numbers: what an expression is worth when its ends are given values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

from wheeltapper.program.play.value import ARITHMETIC, Val, number

DEEP = 60
# Of one number they are that number: changes of shape, and sums and means over one.
KEEPS = {
    "sum", "mean", "squeeze", "unsqueeze", "view", "reshape", "flatten", "float", "clone", "detach", "contiguous", "expand", "to", "double",
    "stop_gradient", "tensor", "as_tensor", "item", "permute", "transpose", "astype", "nanmean", "expand_as", "view_as", "gather", "repeat",
    "clamp_min", "clamp_max", "clamp", "clip", "asarray", "array", "float32", "register_buffer", "index_select", "take", "type_as",
}  # fmt: skip
FUNCTIONS: dict[str, Callable[[float], float]] = {
    "exp": math.exp, "log": math.log, "sqrt": math.sqrt, "tanh": math.tanh, "abs": abs, "square": lambda x: x * x, "log1p": math.log1p,
    "expm1": math.expm1, "sigmoid": lambda x: 1 / (1 + math.exp(-x)), "softplus": lambda x: math.log1p(math.exp(x)), "cos": math.cos,
    "sin": math.sin, "rsqrt": lambda x: 1 / math.sqrt(x), "reciprocal": lambda x: 1 / x, "relu": lambda x: max(x, 0.0),
    "neg": lambda x: -x, "logsigmoid": lambda x: -math.log1p(math.exp(-x)), "atanh": math.atanh, "negative": lambda x: -x, "exp2": lambda x: 2.0**x,
}  # fmt: skip
OF_TWO: dict[str, Callable[[float, float], float]] = {
    "minimum": min, "maximum": max, "mul": lambda a, b: a * b, "multiply": lambda a, b: a * b, "sub": lambda a, b: a - b,
    "add": lambda a, b: a + b, "div": lambda a, b: a / b, "pow": lambda a, b: a**b, "true_divide": lambda a, b: a / b,
}  # fmt: skip
Given = Mapping[int, float]


def worth_at(value: Val | None, given: Given, depth: int = 0) -> float | None:
    """The number that a value is when the values in `given` (by id) are those numbers; None where something else is in it."""
    if value is None or depth > DEEP:
        return None
    if id(value) in given:
        return given[id(value)]
    known = number(value)
    if known is not None:
        return float(known)
    try:
        return _worked_out(value, given, depth + 1)
    except (ArithmeticError, ValueError, TypeError):
        return None


def _worked_out(value: Val, given: Given, depth: int) -> float | None:
    match value.op:
        case "unary" if value.name == "USub":
            inner = worth_at(value.args[0], given, depth)
            return None if inner is None else -inner
        case "bin" if value.name in ARITHMETIC or value.name == "Pow":
            parts = [worth_at(a, given, depth) for a in value.args]
            if parts[0] is None or parts[1] is None:
                return None
            made = parts[0] ** parts[1] if value.name == "Pow" else ARITHMETIC[value.name](*parts)
            return made if isinstance(made, float | int) else None
        case "item" | "batch":
            return worth_at(value.args[0], given, depth)
        case "net" if isinstance(value.data, Val):
            return worth_at(value.data, given, depth)
        case "attr" if value.name in ("pi", "e") and value.args and value.args[0].op == "lib":
            return math.pi if value.name == "pi" else math.e
        case "lib" if value.name == "pi":
            return math.pi
        case "call":
            return _called(value, given, depth)
    return None


def _called(value: Val, given: Given, depth: int) -> float | None:
    args = value.args
    if value.name in FUNCTIONS and len(args) == 1:
        inner = worth_at(args[0], given, depth)
        return None if inner is None else FUNCTIONS[value.name](inner)
    if value.name in OF_TWO and len(args) == 2:
        a, b = (worth_at(x, given, depth) for x in args)
        return None if a is None or b is None else OF_TWO[value.name](a, b)
    if value.name in ("min", "max") and len(args) == 2:
        told = [x for x in (worth_at(a, given, depth) for a in args) if x is not None]
        return (min if value.name == "min" else max)(told) if len(told) == 2 else None
    if value.name in KEEPS and args:
        return worth_at(args[0], given, depth)
    return None


def ends(value: Val) -> list[Val]:
    """What a formula is made of where arithmetic and known functions end: each once, numbers left out."""
    found: dict[int, Val] = {}
    for one in _ends(value, 0):
        found[id(one)] = one
    return list(found.values())


def _ends(value: Val, depth: int) -> Iterator[Val]:
    if number(value) is not None or value.op == "const" or (value.op == "lib" and value.name == "pi"):
        return
    inner: tuple[Val, ...] = ()
    if (value.op == "unary" and value.name == "USub") or (value.op == "bin" and (value.name in ARITHMETIC or value.name == "Pow")):
        inner = value.args
    elif value.op in ("item", "batch") or (value.op == "call" and value.name in KEEPS - {"tensor", "as_tensor", "array"} and value.args):
        inner = value.args[:1]
    elif value.op == "call" and (value.name in FUNCTIONS or value.name in OF_TWO or value.name in ("min", "max")):
        inner = value.args
    elif value.op == "net" and isinstance(value.data, Val) and _is_arithmetic(value.data):
        inner = (value.data,)
    if not inner or depth > DEEP:
        yield value
        return
    for one in inner:
        yield from _ends(one, depth + 1)


def _is_arithmetic(value: Val) -> bool:
    return value.op in ("bin", "unary") or (value.op == "call" and value.name in FUNCTIONS)


def slope_at(value: Val, of: Val, given: dict[int, float], step: float = 1e-4) -> float | None:
    """How fast a formula grows with one of its ends."""
    here = given.get(id(of))
    if here is None:
        return None
    low, high = (worth_at(value, {**given, id(of): here + d}) for d in (-step, step))
    return None if low is None or high is None else (high - low) / (2 * step)
