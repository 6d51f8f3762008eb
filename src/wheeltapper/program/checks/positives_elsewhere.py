"""Each sample's positive is another sample.

What it sees
------------
A contrastive loss over a table of similarities whose right answers are not those on the diagonal: the row numbers moved
by one, turned round or shuffled.

Why it matters
--------------
Views of different samples are pulled together, and the two views of the same sample are pushed apart.

How it decides
--------------
The logits of a cross-entropy are products of two batches of embeddings, the targets are `arange` with `roll`, `flip`,
an index of random order or a known shift after it, and neither batch is put in that order.

When it is wrong
----------------
If one side was put in that order before, where it cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import REORDERS, lineage
from wheeltapper.program.play.story import RANDOM
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "positives-elsewhere"
CAUSE: str | None = "target-misaligned"
DECIDES = True

MOVED = REORDERS | {"roll", "fliplr", "rot90"}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        way = list(made_of(loss.args[0], deep=False, stop=lambda v: v.op == "net"))
        moved = _moved(loss.args[1])
        if moved is None or not any(_is_product(v) for v in way):
            continue
        if any(v.op == "call" and v.name in MOVED for v in way):
            continue
        yield code.seen(ID, "The right answers of the similarities are the rows of other samples.", moved, loss)
        return


def _is_product(value: Val) -> bool:
    """Outputs of networks, or of one, multiplied row by row."""
    product = (value.op == "bin" and value.name == "MatMult") or (
        value.op == "call" and value.name in ("matmul", "mm", "einsum")
    )
    return product and all(any(v.op == "net" for v in made_of(a)) for a in value.args[-2:])


def _moved(target: Val) -> Val | None:
    """What moves the row numbers; None where they are as they were counted, or are something else."""
    way = lineage(target)
    if not any(v.op == "call" and v.name == "arange" for v in way):
        return None
    for one in way:
        if one.op == "call" and one.name in MOVED:
            return one
        if one.op == "item" and len(one.args) > 1 and plain(one.args[1]).name in RANDOM:
            return one
        if one.op == "bin" and one.name in ("Add", "Sub") and (number(one.args[1]) or 0) != 0:
            shifted = any(v.op == "bin" and v.name == "Mod" for v in way)
            return one if shifted else None
    return None
