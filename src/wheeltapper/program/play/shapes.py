"""The axes of a tensor by name, as far as its program spells them out: `x.view(B, T, h, d).transpose(1, 2)`."""

from __future__ import annotations

from typing import Any

from wheeltapper.program.play.value import Val, number

Axes = tuple[Any, ...]
KEEPS = {
    "softmax", "log_softmax", "masked_fill", "masked_fill_", "dropout", "relu", "gelu", "tanh", "sigmoid", "contiguous", "float", "clone",
    "clamp", "exp", "tril", "triu", "half", "to", "type_as", "nan_to_num", "detach",
}  # fmt: skip
DEEP = 24


def axes(value: Val | None, depth: int = 0) -> Axes | None:
    """One name for each axis; equal names are equal sizes. None where the shape is not spelled out."""
    if value is None or depth > DEEP:
        return None
    go = depth + 1
    if value.op == "bin":
        return _of_two(value, go)
    if value.op == "net" and value.args[0].op == "call" and value.args[0].name in ("Dropout", "Identity", "Softmax"):
        return axes(value.args[1], go) if len(value.args) > 1 else None
    if value.op != "call" or not value.args:
        return None
    if value.name in ("view", "reshape"):
        return _viewed(value)
    if value.name in KEEPS:
        return axes(value.args[0], go)
    if value.name in ("transpose", "swapaxes") and len(value.args) == 3:
        return _turned(axes(value.args[0], go), [number(a) for a in value.args[1:]])
    if value.name == "permute":
        return _permuted(axes(value.args[0], go), value)
    if value.name in ("matmul", "bmm") and len(value.args) == 2:
        return _product(axes(value.args[0], go), axes(value.args[1], go))
    return None


def _of_two(value: Val, depth: int) -> Axes | None:
    a, b = (axes(v, depth) for v in value.args)
    if value.name == "MatMult":
        return _product(a, b)
    if a is None or b is None:
        return a if number(value.args[1]) is not None or (b is None and a is not None) else b
    return a if len(a) >= len(b) else b


def _product(a: Axes | None, b: Axes | None) -> Axes | None:
    return (*a[:-1], b[-1]) if a is not None and b is not None and len(a) == len(b) else None


def _viewed(value: Val) -> Axes | None:
    given = list(value.args[1:])
    if len(given) == 1 and given[0].items:
        given = given[0].items
    return tuple(_name(g) for g in given) if given and given[0].op != "attr" else None


def _name(value: Val) -> Any:
    known = number(value)
    if known is not None:
        return ("number", known)
    if value.op == "call" and value.name == "size" and len(value.args) > 1:
        return ("size", id(value.args[0]), number(value.args[1]))
    if value.op == "item" and value.args[0].op == "attr" and value.args[0].name == "shape":
        return ("size", id(value.args[0].args[0]), number(value.args[1]))
    return ("value", id(value))


def _turned(before: Axes | None, places: list[float | None]) -> Axes | None:
    if before is None or any(p is None or not -len(before) <= p < len(before) for p in places):
        return None
    out = list(before)
    a, b = (int(p or 0) for p in places)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


def _permuted(before: Axes | None, value: Val) -> Axes | None:
    given = value.args[1].items if len(value.args) == 2 and value.args[1].items else list(value.args[1:])
    places = [number(g) for g in given]
    if (
        before is None
        or len(places) != len(before)
        or any(p is None or not -len(before) <= p < len(before) for p in places)
    ):
        return None
    return tuple(before[int(p or 0)] for p in places)
