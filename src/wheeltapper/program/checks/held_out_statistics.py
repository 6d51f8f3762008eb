"""The normalisation is computed on held-out data.

What it sees
------------
Mean and spread (or a fitted scaler) taken from the validation or test part, or from all data before it was split, and
used for training.

Why it matters
--------------
Held-out data shapes what the model sees: scores are too good, or training is normalised with the numbers of other
data.

How it decides
--------------
The numbers that the training inputs are scaled with are traced back to a part of the data that is not the training
part.

When it is wrong
----------------
If only the spread of the whole data set is known in practice too.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import SCALES, STATISTICS, bounds, key, lineage, pairs_of, part_of
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "held-out-statistics"
CAUSE: str | None = "train-val-leak"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, given, _ in pairs_of(story):
        mine = part_of(given)
        if mine is None:
            continue
        for one in lineage(given):
            for data in _measured(code, one):
                theirs = part_of(data)
                if theirs is not None and _apart(mine, theirs):
                    yield code.seen(
                        ID,
                        "The training inputs are normalised with the numbers of another part of the data.",
                        data,
                        theirs,
                        one,
                    )
                    return
                if theirs is None and any(v is data for v in lineage(mine)):
                    yield code.seen(
                        ID,
                        "The numbers for the normalisation are taken from all data, before it was split.",
                        data,
                        one,
                        severity="watch",
                        grade="suspected",
                    )
                    return


def _apart(mine: Val, theirs: Val) -> bool:
    """Whether less than half of what was measured is of the training part, by what is known of both."""
    if mine.op == theirs.op == "split":
        return mine.name == "train" and theirs.name == "test"
    a, b = bounds(mine), bounds(theirs)
    if a is None or b is None or key(plain(mine.args[0])) != key(plain(theirs.args[0])):
        return False
    return min(a[1], b[1]) - max(a[0], b[0]) < 0.5 * (b[1] - b[0])


def _measured(code: Code, value: Val) -> list[Val]:
    """The data whose mean, spread or fit this step of scaling uses."""
    out: list[Val] = []
    if value.op == "bin" and value.name in ("Sub", "Div"):
        out += [v.args[0] for v in made_of(value.args[1]) if v.op == "call" and v.name in STATISTICS and v.args]
    if value.op == "call" and value.name in SCALES and value.args:
        scaler = value.args[0]
        out += [scaler.args[1]] if scaler.op == "call" and scaler.name == "fit" and len(scaler.args) > 1 else []
        out += [c.args[1] for c in code.story.named("fit") if c.args[0] is scaler and len(c.args) > 1]
    return out
