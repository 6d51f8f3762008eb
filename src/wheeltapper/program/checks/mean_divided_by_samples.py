"""A sum of batch means is divided by the number of samples.

What it sees
------------
`total += loss.item()` of a loss that is already the mean of its batch, and `total / count` where the count grows by the
samples (or tokens) of each batch.

Why it matters
--------------
The number told is the loss divided by the size of a batch once more: a thousand times too low, and another one for
every batch size.

How it decides
--------------
What is added up is the plain value of a loss with its usual reduction, not multiplied by any size; what it is divided
by is added up from sizes (`len`, `size`, `numel`, `shape`) in the same loop.

When it is wrong
----------------
If the loss sums over its batch by itself in a way that is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import LOSSES
from wheeltapper.program.play.value import Val, choices, text_of
from wheeltapper.program.reading import Code

ID = "mean-divided-by-samples"
CAUSE: str | None = "eval-broken"
DECIDES = True

SIZES = {"len", "size", "numel"}


def check(code: Code) -> Iterator[Finding]:
    adds = code.story.named("augment")
    totals = {a.node: a for a in adds if len(a.args) > 1 and _mean_loss(a.args[1])}
    counts = {a.node: a for a in adds if len(a.args) > 1 and _is_size(a.args[1])}
    for total in totals.values():
        for count in counts.values():
            if not total.loops or total.loops != count.loops or total.guards != count.guards:
                continue
            for ratio in _ratios(code, total, count):
                yield code.seen(ID, "Means of batches are added up and divided by the number of samples.", total, count, ratio)
                return


def _mean_loss(value: Val) -> bool:
    """The plain value of a loss with the usual reduction."""
    while value.op == "call" and value.name in ("item", "detach", "float", "cpu") and value.args:
        value = value.args[0]
    if value.op != "call" or value.name not in LOSSES or value.origin == "written out":
        return False
    reduction = value.kwargs.get("reduction")
    return (reduction is None or text_of(reduction) == "mean") and value.name != "kl_div"


def _is_size(value: Val) -> bool:
    """How many samples or tokens a batch has, and nothing else."""
    if value.op == "call" and value.name in SIZES:
        return True
    return value.op == "item" and value.args[0].op == "attr" and value.args[0].name == "shape"


def _ratios(code: Code, total: Val, count: Val) -> Iterator[Val]:
    """Divisions of what the one adds up by what the other does."""
    for value in code.story.player.quotients:
        one, other = ([v.node for c in choices(a) for v in (c, *c.args)] for a in value.args)
        if total.node in one and count.node in other:
            yield value
