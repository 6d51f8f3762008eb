"""The terms of a loss: what is added up in it, with which sign and which known factors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.program.play.value import Val, made_of, number


@dataclass(frozen=True, eq=False)
class Term:
    """One term of a loss: its sign, the known factors in front of it, and what it is."""

    sign: int
    factor: float
    value: Val


def terms_of(value: Val, sign: int, factor: float, depth: int) -> Iterator[Term]:
    if depth > 24:
        yield Term(sign, factor, value)
        return
    go = depth + 1
    if value.op == "phi":
        for one in value.args:
            yield from terms_of(one, sign, factor, go)
    elif value.op == "bin" and value.name in ("Add", "Sub"):
        yield from terms_of(value.args[0], sign, factor, go)
        yield from terms_of(value.args[1], -sign if value.name == "Sub" else sign, factor, go)
    elif value.op == "unary" and value.name == "USub":
        yield from terms_of(value.args[0], -sign, factor, go)
    elif value.op == "bin" and value.name in ("Mult", "Div"):
        yield from _product(value, sign, factor, go)
    elif (
        value.op == "call"
        and value.name in ("mean", "sum", "nanmean", "stack", "squeeze", "scale", "cat", "clamp")
        and value.args
    ):
        inner = value.args[-1] if value.name == "scale" else value.args[0]
        several = (
            inner.items
            if inner.op in ("list", "tuple") and inner.items
            else inner.args[:1]
            if inner.op == "comp"
            else [inner]
        )
        for one in several or []:
            yield from terms_of(one, sign, factor, go)
    elif value.op == "net" and isinstance(value.data, Val) and value.data.op != "const":
        yield from terms_of(value.data, sign, factor, go)
    elif not (value.op == "const" and not value.data):
        yield Term(sign, factor, value)


def _product(value: Val, sign: int, factor: float, depth: int) -> Iterator[Term]:
    a, b = value.args
    known = number(b)
    if known is not None and (value.name == "Mult" or known != 0):
        yield from terms_of(
            a, -sign if known < 0 else sign, factor * abs(known) if value.name == "Mult" else factor / abs(known), depth
        )
    elif value.name == "Mult" and (left := number(a)) is not None:
        yield from terms_of(b, -sign if left < 0 else sign, factor * abs(left), depth)
    elif value.name == "Div" and b.name not in ("len", "size", "numel") and any(v.op == "net" for v in made_of(b)):
        yield Term(sign, factor, value)  # a ratio of two things the network makes
    elif value.name == "Div":
        yield from terms_of(a, sign, factor, depth)
    elif (weighed := _with_weight(a, b)) is not None:
        yield from terms_of(weighed[0], sign, factor * weighed[1], depth)
    else:
        signs = [_leading_sign(v) for v in (a, b)]
        yield Term(sign * signs[0] * signs[1], factor, value)


def _with_weight(a: Val, b: Val) -> tuple[Val, float] | None:
    """`weight * min(1, step / warm) * term`: the term, and the largest that its weight becomes."""
    for weight, term in ((a, b), (b, a)):
        known = _largest(weight)
        if known is not None and known > 0 and not any(v.op == "net" for v in made_of(weight)):
            return term, known
    return None


def _largest(value: Val) -> float | None:
    """The bound of a weight that grows up to a number: products of numbers and of `min(number, ...)`."""
    known = number(value)
    if known is not None:
        return known
    if value.op == "bin" and value.name == "Mult":
        a, b = (_largest(x) for x in value.args)
        return a * b if a is not None and b is not None and a > 0 and b > 0 else None
    if value.op == "call" and value.name in ("min", "minimum"):
        return min((x for x in map(number, value.args) if x is not None), default=None)
    return None


def _leading_sign(value: Val) -> int:
    """The sign in front of a factor: minus for `-log_prob`."""
    sign = 1
    for _ in range(12):
        if value.op == "unary" and value.name == "USub":
            sign, value = -sign, value.args[0]
        elif value.op == "call" and value.name in ("mean", "sum", "squeeze", "detach", "unsqueeze") and value.args:
            value = value.args[0]
        elif value.op == "bin" and value.name == "Mult" and (known := number(value.args[0])) is not None:
            sign, value = (-sign if known < 0 else sign), value.args[1]
        elif value.op == "bin" and value.name in ("Mult", "Div") and (known := number(value.args[1])) is not None:
            sign, value = (-sign if known < 0 else sign), value.args[0]
        elif value.op == "bin" and value.name == "Mult":
            return sign * _leading_sign(value.args[0]) * _leading_sign(value.args[1])
        else:
            break
    return sign
