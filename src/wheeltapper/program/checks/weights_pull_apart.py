"""A weight that shares the loss between two terms is outside of nought and one.

What it sees
------------
`alpha * a + (1 - alpha) * b` with an alpha above one or below nought.

Why it matters
--------------
One of the two terms is then made larger instead of smaller.

How it decides
--------------
The same known number stands in front of one term and, as one minus it, in front of the other, and one of the two
weights is negative.

When it is wrong
----------------
If the second term is to be pushed away on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "weights-pull-apart"
CAUSE: str | None = "loss-weight-runaway"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            if value.op != "bin" or value.name != "Add":
                continue
            weights = [w for side in value.args for w in _weights(side)]
            rest = [w for w in weights if w.op == "bin" and w.name == "Sub" and number(w.args[0]) == 1 and (number(w) or 0) < 0]
            for one in rest:
                share = number(one.args[1])
                if any(w is not one and number(w) == share for w in weights):
                    text = f"The two terms share the loss as {share:g} and {number(one):g}: the second one is made larger."
                    yield code.seen(ID, text, value, one.args[1], one)
                    return


def _weights(value: Val) -> list[Val]:
    return [a for a in value.args if number(a) is not None] if value.op == "bin" and value.name == "Mult" else []
