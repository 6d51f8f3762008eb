"""Probabilities are normalised along the wrong axis.

What it sees
------------
`softmax` or `log_softmax` along the batch instead of along the classes or the keys.

Why it matters
--------------
The samples of a batch compete with each other. What one gets depends on who else is in the batch, and the loss has
another meaning than it should.

How it decides
--------------
The axis is 0, and what is normalised is the output of a network on a batch, without a change of axes in between, or the
scores of attention.

When it is wrong
----------------
If the batch is not the first axis, as in sequence-first code; then a change of axes is usually near.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.wrong_axis import along_the_batch
from wheeltapper.program.reading import Code

ID = "softmax-wrong-axis"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in along_the_batch(code, "softmax", "log_softmax"):
        yield code.seen(ID, "The outputs are normalised along the batch, not along the classes.", call)
        return
