"""The similarities cannot tell the positive from the others.

What it sees
------------
A contrastive loss whose similarities are multiplied by a small number instead of divided by it, or whose target is
the entry of each row with itself, which was taken out.

Why it matters
--------------
Cosines between minus one and one, made smaller still, are all alike to a softmax: the loss stays at the logarithm of
the batch. A target that was taken out makes it infinite.

How it decides
--------------
The scores of a cross-entropy are products of normalised vectors times a known number below one; or their diagonal was
filled with minus infinity and the targets are the numbers 0, 1, 2, ... of the rows.

When it is wrong
----------------
If another scale is applied afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

DIAGONAL = {"fill_diagonal_", "fill_diagonal"}

ID = "contrast-cannot-tell"
CAUSE: str | None = "temperature-too-high"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        scores, target = plain(loss.args[0]), plain(loss.args[1])
        for value in _scaled(scores):
            known = next((n for n in map(number, value.args) if n is not None), None)
            if known is not None and 0 < known < 1:
                text = f"The similarities are multiplied by {known:g}: they all lie within {known:g} of nought, and a temperature divides."
                yield code.seen(ID, text, value, loss)
                return
        if target.op == "call" and target.name == "arange" and (out := _taken_out(scores)) is not None:
            yield code.seen(ID, "The target of each row is its entry with itself, which was taken out.", target, out, loss)
            return


def _scaled(scores: Val) -> Iterator[Val]:
    """Products of unit vectors, times something, on the way into the loss."""
    for _ in range(8):
        if scores.op == "call" and scores.args and scores.name in ("masked_fill", *DIAGONAL):
            scores = plain(scores.args[0])
        elif scores.op == "bin" and scores.name == "Mult" and _are_cosines(scores):
            yield scores
            return
        else:
            return


def _are_cosines(value: Val) -> bool:
    inner = list(made_of(value, deep=False, stop=lambda v: v.op == "net"))
    products = [v for v in inner if (v.op == "bin" and v.name == "MatMult") or (v.op == "call" and v.name in ("matmul", "mm", "cosine_similarity"))]
    unit = any(v.op == "call" and v.name in ("normalize", "cosine_similarity") for v in inner)
    return len(products) == 1 and unit and any(a is products[0] for a in value.args) and not any(v.name == "exp" for v in inner)


def _taken_out(scores: Val) -> Val | None:
    for value in made_of(scores, deep=False, stop=lambda v: v.op == "net"):
        if value.op != "call" or value.name not in ("masked_fill", "masked_fill_", *DIAGONAL):
            continue
        mask = plain(value.args[1]) if len(value.args) > 1 else None
        if value.name in DIAGONAL or (mask is not None and mask.op == "call" and mask.name == "eye"):
            return value
    return None
