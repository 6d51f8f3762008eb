"""A split is made of an order that changes with every pass.

What it sees
------------
A tf.data dataset that is shuffled anew at every pass, and then cut into two parts with take and skip.

Why it matters
--------------
In every epoch other records are in the two parts: what is validated on was trained on before.

How it decides
--------------
`take` and `skip` of one dataset that `shuffle` made without `reshuffle_each_iteration=False`.

When it is wrong
----------------
If the dataset is read only once.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "split-of-a-moving-order"
CAUSE: str | None = "train-val-leak"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for shuffle in story.named("shuffle"):
        fixed = shuffle.kwargs.get("reshuffle_each_iteration")
        if shuffle.origin != ".shuffle" or not _is_dataset(shuffle) or (fixed is not None and fixed.data is not True):
            continue
        cuts = [[c for c in story.named(n) if c.args and c.args[0] is shuffle] for n in ("take", "skip")]
        if all(cuts):
            yield code.seen(ID, "The order changes with every pass, so that take and skip give parts that overlap.", shuffle, *(c[0] for c in cuts))
            return


def _is_dataset(value: Val) -> bool:
    return any(v.origin.startswith(("tensorflow", "tf.")) for v in _chain(value))


def _chain(value: Val) -> list[Val]:
    out: list[Val] = []
    while value.op == "call" and value.args and len(out) < 20:
        value = value.args[0]
        out.append(value)
    return [*out, value]
