"""Two things are compared that are one.

What it sees
------------
A difference in the loss whose two sides are made in the same way of the same values.

Why it matters
--------------
It is zero whatever the network does: the term teaches nothing.

How it decides
--------------
Both sides of a subtraction in the loss are the same application of the same network to the same data.

When it is wrong
----------------
If a random draw inside makes the two differ.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import key
from wheeltapper.program.play.story import RANDOM
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "difference-of-the-same"
CAUSE: str | None = "target-misaligned"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        names = {v.name for v in made_of(loss) if v.op == "call"}
        if not names & {"logsigmoid", "softplus"}:
            continue
        scores = _scores(loss)
        for i, a in enumerate(scores):
            for b in scores[i + 1 :]:
                if a[1] is not b[1] and a[0] == b[0] and a[1].no_grad == b[1].no_grad:
                    text = "The two sides that are compared are the same network on the same data."
                    yield code.seen(ID, text, b[1], a[1], loss)
                    return


def _scores(loss: Val) -> list[tuple[object, Val]]:
    """The networks applied in the differences of the loss, with what each is applied to."""
    out: dict[int, tuple[object, Val]] = {}
    for value in made_of(loss, deep=False):
        if value.op != "bin" or value.name != "Sub":
            continue
        for net in (v for side in value.args for v in made_of(side, deep=False) if v.op == "net" and v.order >= 0):
            given = [*net.args[1:], *net.kwargs.values()]
            if any(v.op == "call" and v.name in RANDOM for g in given for v in made_of(g, deep=False)) or not given:
                continue
            out[net.order] = ((id(net.args[0]), tuple(str(key(g)) for g in given)), net)
    return list(out.values())
