"""How many axes a tensor has, as a number or relative to a batch whose own number of axes is not known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from wheeltapper.program.play.value import Val, made_of, number

SAME = {
    "tensor", "as_tensor", "from_numpy", "asarray", "array", "astype", "tanh", "sin", "cos", "exp", "log", "abs", "sqrt", "clip", "clamp",
    "float", "long", "to", "FloatTensor", "Tensor", "permutation", "shuffle", "maximum", "minimum", "sigmoid", "relu", "softplus",
    "to_numpy", "values", "gather", "softmax", "log_softmax", "detach", "clone", "dropout", "double", "cumsum",
}  # fmt: skip
REDUCES = {"sum", "mean", "argmax", "max", "min", "amax", "amin", "std", "var", "any", "all", "prod", "norm"}
KEEPING_LAYERS = {
    "Linear",
    "Dropout",
    "LayerNorm",
    "BatchNorm1d",
    "LSTM",
    "GRU",
    "RNN",
    "ReLU",
    "Conv1d",
    "Conv2d",
    "LazyLinear",
}
DRAWS = {"randn", "rand", "zeros", "ones"}
DEEP = 40


@dataclass(frozen=True, slots=True)
class Rank:
    """`base` None: `axes` is the number itself; else it is more (or fewer) than that of the base."""

    base: Any
    axes: int

    def more(self, by: int) -> Rank:
        return Rank(self.base, self.axes + by)


def rank(value: Val | None, depth: int = 0) -> Rank | None:
    """How many axes a tensor has, where that is known."""
    if value is None or depth > DEEP:
        return None
    if number(value) is not None:
        return Rank(None, 0)
    go = depth + 1
    match value.op:
        case "item":
            return _of_item(value, go)
        case "attr" if value.name in ("values", "T") and value.args:
            return _of_values(value, go)
        case "batch":
            inner = rank(value.args[0], go)
            return inner.more(1) if inner is not None and inner.base is None else Rank(id(value), 0)
        case "elem":
            return Rank(id(value), 0)
        case "split" | "unary":
            return rank(value.args[0], go)
        case "phi":
            found = {rank(a, go) for a in value.args}
            return found.pop() if len(found) == 1 else None
        case "bin":
            return _of_two(value, go)
        case "net":
            return _of_net(value, go)
        case "call":
            return _of_call(value, go)
    return None


def _of_values(value: Val, depth: int) -> Rank | None:
    inner = value.args[0]
    if inner.op == "call" and inner.name in REDUCES:
        return _reduced(inner, depth)
    return rank(inner, depth)


def _of_two(value: Val, depth: int) -> Rank | None:
    sides = [rank(a, depth) for a in value.args]
    if any(s is None for s in sides):
        return None
    a, b = (s for s in sides if s is not None)
    if value.name == "MatMult":
        pair = sorted((a.axes, b.axes)) if a.base is b.base is None else []
        return Rank(None, 2) if pair == [2, 2] else Rank(None, 1) if pair == [1, 2] else None
    if a.base == b.base:
        return a if a.axes >= b.axes else b
    flat = [s for s in (a, b) if s == Rank(None, 0)]
    return (b if flat[0] is a else a) if flat else None


def _of_item(value: Val, depth: int) -> Rank | None:
    base, index = value.args
    if index.op == "const" and isinstance(index.data, str):
        table = any(v.op == "call" and v.name.startswith("read_") for v in made_of(base, deep=False))
        return Rank(None, 1) if table else None
    if base.op == "call" and base.name in ("max", "min") and number(index) == 0 and base.arg("dim", 1) is not None:
        return _reduced(base, depth)
    if (
        base.op == "net"
        and number(index) == 0
        and base.args[0].op == "call"
        and base.args[0].name in ("LSTM", "GRU", "RNN")
    ):
        return rank(base, depth)
    before = rank(base, depth)
    if before is None:
        return None
    parts = index.items if index.op == "tuple" and index.items is not None else [index]
    if any(p.op == "const" and p.data is Ellipsis for p in parts):
        return None
    gone = sum(1 for p in parts if _is_place(p))
    new = sum(1 for p in parts if p.op == "const" and p.data is None)
    return before.more(new - gone)


def _is_place(index: Val) -> bool:
    """One place along an axis, not several."""
    if index.op == "bin":
        return all(
            _is_place(a) or a.op in ("attr", "param") or (a.op == "call" and a.name == "len") for a in index.args
        )
    return number(index) is not None or index.op == "index"


def _of_net(value: Val, depth: int) -> Rank | None:
    if isinstance(value.data, Val):
        return rank(value.data, depth)
    layer = value.args[0]
    given = rank(value.args[1], depth) if len(value.args) > 1 else None
    if given is None or layer.op != "call":
        return None
    if layer.name == "Embedding":
        return given.more(1)
    return given if layer.name in KEEPING_LAYERS else None


def _reduced(value: Val, depth: int) -> Rank | None:
    if "keepdim" in value.kwargs or "keepdims" in value.kwargs or len(value.args) > 2:
        return None
    axis = value.arg("dim", 1) or value.arg("axis")
    inner = rank(value.args[0], depth)
    if axis is None:
        return Rank(None, 0)
    return inner.more(-len(axis.items) if axis.items else -1) if inner is not None else None


def _of_call(value: Val, depth: int) -> Rank | None:
    name, args = value.name, value.args
    if name in ("float", "int", "len", "round") and value.origin.startswith("builtins."):
        return Rank(None, 0)
    if name in ("array", "tensor", "asarray", "as_tensor", "FloatTensor") and args and args[0].op == "comp":
        inner = rank(args[0].args[0], depth)
        return inner.more(1) if inner is not None and inner.base is None else None
    if name in REDUCES and args:
        return _reduced(value, depth)
    if name in ("squeeze", "unsqueeze") and len(args) == 2:
        inner = rank(args[0], depth)
        return inner.more(1 if name == "unsqueeze" else -1) if inner is not None else None
    if name in ("view", "reshape") and len(args) > 1 and all(a.op != "attr" and a.items is None for a in args[1:]):
        return Rank(None, len(args) - 1)
    if name == "flatten" and args:
        return Rank(None, 1 if len(args) == 1 else 2) if len(args) == 1 or number(args[1]) == 1 else None
    size = value.kwargs.get("size")
    if size is not None:
        one = number(size) is not None or size.op == "bin" or (size.op == "call" and size.name == "len")
        return Rank(None, len(size.items)) if size.items is not None else Rank(None, 1) if one else None
    if name in DRAWS and args and all(a.op in ("const", "bin", "attr", "call", "tuple", "list") for a in args):
        return Rank(None, len(args) if args[0].items is None else len(args[0].items))
    if name == "where" and len(args) > 1:
        return rank(args[1], depth)
    return rank(args[0], depth) if name in SAME and args else None
