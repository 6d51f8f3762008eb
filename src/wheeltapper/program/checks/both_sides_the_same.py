"""Both sides of an operation are the same value.

What it sees
------------
`minimum(q1, q1)`, `loss_a + loss_a`, `(a - b) - (a - c)`: a value stands where its twin was meant, or cancels.

Why it matters
--------------
The twin is left out: one of two critics is never trained, one of two terms counts twice, what is compared is not in
the comparison.

How it decides
--------------
Both operands are one and the same value, in what a loss is made of, and the operation is one for which that makes no
sense: the smaller or larger of two, a sum of two terms, a difference.

When it is wrong
----------------
If a doubling is meant; a factor of two says that more plainly.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

OF_TWO = {"min", "max", "minimum", "maximum", "fmin", "fmax"}
DISTANCES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "kl_div", "cosine_similarity"}

ID = "both-sides-the-same"
CAUSE: str | None = "wrong-variable"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            a, b = value.args[:2] if len(value.args) >= 2 else (None, None)
            if a is None or a is not b or number(a) is not None or not any(v.op == "net" for v in made_of(a)):
                continue
            if value.op == "call" and value.name in OF_TWO | DISTANCES:
                yield code.seen(ID, f"{value.name} is given the same value twice.", value)
                return
            if value.op == "bin" and value.name in ("Add", "Sub") and value.data != "aug" and not _doubles(value):
                yield code.seen(ID, "The same value stands on both sides.", value, loss)
                return


def _doubles(value: Val) -> bool:
    """A sum that is carried on from turn to turn."""
    return value.args[0].op in ("phi", "elem", "const")
