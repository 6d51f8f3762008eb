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
from wheeltapper.program.play.value import Val, plain
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
