"""The parts of a split overlap.

What it sees
------------
Two parts cut from one array, one to train on and one to evaluate on, with rows in common.

Why it matters
--------------
What is measured on the common rows is memory, not skill.

How it decides
--------------
The bounds of both cuts are compared, as numbers or as shares of the same length; more than a hundredth of the smaller
part lies in both.

When it is wrong
----------------
If one of the two is not used for evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import bounds, evaluated_on, is_part, key, lineage, trained_on
from wheeltapper.program.play.value import Val, number, plain
from wheeltapper.program.reading import Code

ID = "split-overlap"
CAUSE: str | None = "train-val-leak"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    train = [p for t in _all(trained_on(story)) for p in _parts(t)]
    held = [p for _, s in evaluated_on(story) for p in _parts(s)]
    for call in story.named("fit"):
        given = call.kwargs.get("validation_data")
        if given is not None and given.items and len(call.args) > 1:
            train += _parts(call.args[1])
            held += _parts(given.items[0])
    for a in train:
        for b in held:
            if a is b or key(plain(a.args[0])) != key(plain(b.args[0])):
                continue
            one, other = bounds(a), bounds(b)
            if one is None or other is None or (one == other and key(a) == key(b) and a.node is b.node):
                continue
            common = min(one[1], other[1]) - max(one[0], other[0])
            if common > 0.01 * min(one[1] - one[0], other[1] - other[0]):
                yield code.seen(ID, "The part that is evaluated on shares rows with the part that is trained on.", b, a)
                return
    yield from _within(code)


def _within(code: Code) -> Iterator[Finding]:
    """The held-out part was cut from exactly what is trained on, and nothing took it out of there."""
    story = code.story
    pairs = [(t, s, c) for t in trained_on(story) for c, s in evaluated_on(story)]
    for call in story.named("fit"):
        given = call.kwargs.get("validation_data")
        if given is not None and given.items and len(call.args) > 1:
            pairs.append((call.args[1], given.items[0], call))
    for train, held, call in pairs:
        a, b = _source(train), _source(held)
        if a is None or b is None or a is b or a.op in ("param", "free", "const", "lib"):
            continue
        cut = [v for v in lineage(b)[1:] if v is a]
        parts = [v for v in lineage(b) if _cuts(v) and v is not a]
        if cut and parts and not any(_cuts(v) for v in lineage(a)[:1]):
            text = "The data that is evaluated on was cut from the training data, and is still in it."
            yield code.seen(ID, text, parts[0], a, call)
            return


def _cuts(value: Val) -> bool:
    if value.op == "item" and value.args[0].op == "call" and value.args[0].name == "random_split":
        return True
    return (
        value.op == "item"
        and len(value.args) > 1
        and value.args[1].op == "slice"
        and is_part(value)
        and bounds(value) is not None
    )


def _source(value: Val) -> Val | None:
    """The array or dataset behind a loader or a plain dataset of tensors."""
    value = plain(value)
    for _ in range(4):
        if value.op == "call" and value.name in ("TensorDataset", "DataLoader") and value.args:
            value = plain(value.args[0])
        elif value.op == "obj" and (given := value.fields.get("@args")) is not None and given.items:
            value = plain(given.items[0])
        else:
            break
    while value.args and (
        value.op == "attr"
        or (value.op == "item" and isinstance(value.data, str))
        or (value.op == "bin" and number(value.args[1]) is None)
    ):
        value = plain(value.args[0])  # a column stands for its table
    return value


def _all(values: list[Val]) -> list[Val]:
    return values


def _parts(value: Val) -> list[Val]:
    """The cuts of arrays that a dataset or a batch is made of."""
    starts = [value]
    if value.op == "obj":
        given = value.fields.get("@args")
        starts = [*(given.items or [] if given is not None else []), *value.kwargs.values()]
    elif value.op == "call":
        starts = list(value.args)
    return [
        v
        for s in starts
        for one in [next((x for x in lineage(s) if x.op == "item" and is_part(x) and bounds(x)), None)]
        if one is not None
        for v in [one]
    ]
