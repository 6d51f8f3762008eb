"""Teacher and student are compared with opposite signs.

What it sees
------------
A loss that compares two distributions, or two outputs, of which one is made of minus the logits.

Why it matters
--------------
What the teacher holds for likely is what the student learns to hold for unlikely.

How it decides
--------------
Both sides of `kl_div`, of a cross-entropy with soft targets or of a distance are followed to the outputs of their
networks: one rises with them, the other falls.

When it is wrong
----------------
If one of the networks is defined with the opposite sign, as an energy is.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.slopes import slope
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "teacher-negated"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

COMPARES = {"kl_div", "cross_entropy", "mse_loss", "l1_loss", "smooth_l1_loss"}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name not in COMPARES or len(loss.args) < 2:
            continue
        ways = [_way(side) for side in loss.args[:2]]
        if None not in ways and ways[0] == -(ways[1] or 0):
            turned = loss.args[ways.index(-1)]
            yield code.seen(ID, "One side of the comparison is made of minus the network's output.", turned, loss)
            return


def _way(value: Val) -> int | None:
    nets = {v.order for v in made_of(value, deep=False, stop=lambda v: v.op == "net") if v.op == "net"}
    return slope(value, lambda v: v.op == "net" and v.order in nets) or None if len(nets) == 1 else None
