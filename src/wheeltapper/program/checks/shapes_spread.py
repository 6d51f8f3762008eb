"""Two shapes spread over each other.

What it sees
------------
A loss between predictions of shape (n, 1) and targets of shape (n), or a sum of two such in a network.

Why it matters
--------------
Broadcasting makes a table of n by n: every prediction is compared with every target, and the best is the mean.

How it decides
--------------
The number of axes of both sides is derived from the data, the layers and what squeezes or indexes them; the longer
one ends in an axis of size one and has one axis more.

When it is wrong
----------------
If a part of the program that cannot be read changes the shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.ranks import rank
from wheeltapper.program.play.story import NUMBER_LOSSES, Story
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "shapes-spread"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


SHAPED_ALIKE = ("relu", "sigmoid", "tanh", "softplus", "exp")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in NUMBER_LOSSES or len(loss.args) < 2:
            continue
        last = ends_in_one(loss.args[0])
        if (
            last is not None
            and _one_more(loss.args[0], loss.args[1])
            and any(story.is_trained(n.args[0]) for n in made_of(last) if n.op == "net")
        ):
            text = "Predictions of shape (n, 1) are compared with targets of shape (n): each with every one."
            yield code.seen(ID, text, loss, last)
            return
        if last is not None and _squeezed_elsewhere(story, last) and not _has_column(loss.args[1]):
            text = "Predictions of shape (n, 1) are compared as they are; elsewhere the program drops that axis before it compares."
            yield code.seen(ID, text, loss, last, loss.args[0], grade="suspected")
            return
    yield from _sums(code)


def _squeezed_elsewhere(story: Story, prediction: Val) -> bool:
    """Whether another output with one column has its last axis taken off, here or in the evaluation."""
    return any(
        call.args
        and (other := ends_in_one(call.args[0])) is not None
        and other is not prediction
        and (call.name == "squeeze" or number(call.args[-1]) == -1)
        for call in story.named("squeeze", "flatten", "view", "reshape")
        if call.name != "flatten" or len(call.args) == 1
    )


def _has_column(target: Val) -> bool:
    """Whether anything on the way of a target gives it an axis of its own for one column, or hides how it was made."""
    for one in lineage(target):
        if one.op == "call" and one.name in ("unsqueeze", "view", "reshape", "view_as", "expand_dims", "stack", "expand", "repeat", "cat"):
            return True
        if one.op == "item" and len(one.args) > 1:
            parts = one.args[1].items or [one.args[1]]
            if any(p.op == "const" and p.data is None for p in parts) or one.args[1].op == "list":
                return True
        if one.op in ("net", "phi", "param", "free"):
            return True
    return False


def _sums(code: Code) -> Iterator[Finding]:
    """`(a * b).sum(1) + bias(u)` with a bias of shape (n, 1)."""
    for loss in code.story.losses:
        for value in made_of(loss):
            if value.op != "bin" or value.name not in ("Add", "Sub"):
                continue
            for long, short in (value.args, tuple(reversed(value.args))):
                a, b = rank(long), rank(short)
                if ends_in_one(long) is None or a is None or b is None or b == b.__class__(None, 0) or a.base is None:
                    continue
                if a.base == b.base and a.axes - b.axes == 1:
                    text = "A tensor of shape (n, 1) is added to one of shape (n): the result is a table of n by n."
                    yield code.seen(ID, text, value, long)
                    return


def _one_more(prediction: Val, target: Val) -> bool:
    a, b = rank(prediction), rank(target)
    if b is not None and b.base is None and b.axes == 1:
        return a is None or (a.base is None and a.axes == 2) or a.base is not None
    return a is not None and b is not None and a.base == b.base and a.axes - b.axes == 1


def ends_in_one(value: Val) -> Val | None:
    """The value itself if its last axis has size one: a layer with one output, one value picked with an index of shape (n, 1)."""
    for _ in range(12):
        if value.op == "net" and isinstance(value.data, Val):
            value = value.data
        elif value.op == "call" and value.name in SHAPED_ALIKE and value.args:
            value = value.args[0]
        elif (
            value.op == "bin" and value.name in ("Add", "Mult") and sum(number(a) is not None for a in value.args) == 1
        ):
            value = next(a for a in value.args if number(a) is None)
        else:
            break
    if value.op == "call" and value.name == "gather" and len(value.args) > 2:
        return value if _is_column(value.args[2]) else None
    layer = value.args[0] if value.op == "net" else None
    if layer is None or layer.op != "call" or layer.name not in ("Linear", "Embedding"):
        return None
    return value if number(layer.arg("out_features" if layer.name == "Linear" else "embedding_dim", 1)) == 1 else None


def _is_column(index: Val) -> bool:
    if index.op == "call" and index.name == "unsqueeze":
        return number(index.arg("dim", 1)) in (1, -1)
    parts = index.args[1].items if index.op == "item" and len(index.args) > 1 else None
    return bool(parts) and parts[-1].op == "const" and parts[-1].data is None  # type: ignore[index]
