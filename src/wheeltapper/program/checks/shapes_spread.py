"""Predictions and targets have different shapes and are spread over each other.

What it sees
------------
Predictions of shape (n, 1) that are subtracted from, or compared with, targets of shape (n).

Why it matters
--------------
Every prediction is compared with every target. The least loss is the mean of the targets for everybody: nothing else is
learned.

How it decides
--------------
The network's last operation is a layer with one output, with nothing that takes that axis away; the targets are known to
have one axis: a column, a sum over an axis, or the evaluation compares the same output after `squeeze`.

When it is wrong
----------------
If the targets get their second axis where it cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import NUMBER_LOSSES
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "shapes-spread"
CAUSE: str | None = "objective-mismatch"
DECIDES = True

SAME_RANK = {
    "tensor", "as_tensor", "from_numpy", "asarray", "array", "astype", "tanh", "sin", "cos", "exp", "log", "abs", "sqrt", "clip", "clamp",
    "float", "long", "to", "FloatTensor", "Tensor", "where", "permutation", "shuffle", "maximum", "minimum", "sigmoid",
}  # fmt: skip
REDUCES = {"sum", "mean", "argmax", "max", "min", "std", "var", "any", "all", "prod", "norm"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in NUMBER_LOSSES or len(loss.args) < 2:
            continue
        last = _single_output(loss.args[0])
        if last is not None and rank(loss.args[1]) == 1 and story.is_trained(last.args[0]):
            text = "Predictions of shape (n, 1) are compared with targets of shape (n): each with every one."
            yield code.seen(ID, text, loss, last)
            return


def _single_output(value: Val) -> Val | None:
    """The layer with one output that a prediction comes from, with no change of shape after it."""
    for _ in range(12):
        if value.op == "net" and isinstance(value.data, Val):
            value = value.data
        elif value.op == "call" and value.name in ("relu", "sigmoid", "tanh", "softplus", "exp") and value.args:
            value = value.args[0]
        elif value.op == "bin" and value.name in ("Add", "Mult") and any(number(a) is not None for a in value.args):
            value = next(a for a in value.args if number(a) is None)
        else:
            break
    layer = value.args[0] if value.op == "net" else None
    ends = (
        layer is not None
        and layer.op == "call"
        and layer.name == "Linear"
        and number(layer.arg("out_features", 1)) == 1
    )
    return value if ends else None


def rank(value: Val | None, depth: int = 0) -> int | None:
    """How many axes a tensor has, where that is known."""
    if value is None or depth > 40:
        return None
    if number(value) is not None:
        return 0
    go = depth + 1
    match value.op:
        case "item":
            return _of_item(value, go)
        case "batch":
            inner = rank(value.args[0], go)
            return None if inner is None else inner + 1
        case "split" | "unary":
            return rank(value.args[0], go)
        case "phi":
            found = {rank(a, go) for a in value.args}
            return found.pop() if len(found) == 1 else None
        case "bin":
            return _of_two(value, go)
        case "call":
            return _of_call(value, go)
    return None


def _of_two(value: Val, depth: int) -> int | None:
    sides = [0 if number(a) is not None else rank(a, depth) for a in value.args]
    if value.name == "MatMult":
        return 2 if sides == [2, 2] else 1 if sorted(s or 0 for s in sides) == [1, 2] else None
    known = [s for s in sides if s is not None]
    return max(known) if len(known) == 2 else None


def _of_item(value: Val, depth: int) -> int | None:
    base, index = value.args
    if index.op == "const" and isinstance(index.data, str):
        return 1 if any(v.op == "call" and v.name.startswith("read_") for v in made_of(base, deep=False)) else None
    before = rank(base, depth)
    if before is None:
        return None
    parts = index.items if index.op == "tuple" and index.items is not None else [index]
    gone = sum(1 for p in parts if number(p) is not None or p.op == "index")
    new = sum(1 for p in parts if p.op == "const" and p.data is None)
    return before - gone + new


def _of_call(value: Val, depth: int) -> int | None:
    name, args = value.name, value.args
    if name in REDUCES and args:
        if "keepdim" in value.kwargs or "keepdims" in value.kwargs:
            return None
        axis = value.arg("dim", 1) or value.arg("axis")
        inner = rank(args[0], depth)
        return None if inner is None else inner - 1 if axis is not None else 0
    size = value.kwargs.get("size")
    if size is not None:
        one = number(size) is not None or size.op == "bin" or (size.op == "call" and size.name == "len")
        return len(size.items) if size.items is not None else 1 if one else None
    if (
        name in ("randn", "rand", "zeros", "ones")
        and args
        and all(a.op in ("const", "bin", "attr", "call") for a in args)
    ):
        return len(args) if args[0].items is None else len(args[0].items)
    if name in SAME_RANK and args:
        return rank(args[1] if name == "where" and len(args) > 1 else args[0], depth)
    return None
