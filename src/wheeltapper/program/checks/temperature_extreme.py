"""The temperature makes all scores alike, or one of them everything.

What it sees
------------
Similarities divided by a temperature of 3 or more, or of less than 0.005, before a cross-entropy.

Why it matters
--------------
A high temperature flattens the distribution: the loss stays at the logarithm of the batch. A very low one makes it a
step.

How it decides
--------------
The scores are a product of two normalised sets of vectors; the number they are divided by.

When it is wrong
----------------
If the vectors are not normalised.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of, number
from wheeltapper.program.reading import Code

ID = "temperature-extreme"
CAUSE: str | None = "temperature-too-high"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or not loss.args:
            continue
        for value in made_of(loss.args[0], deep=False):
            if value.op != "bin" or value.name != "Div" or (known := number(value.args[1])) is None:
                continue
            products = any(
                (v.op == "bin" and v.name == "MatMult")
                or (v.op == "call" and v.name in ("matmul", "mm", "cosine_similarity"))
                for v in made_of(value.args[0], deep=False)
            )
            normalised = any(
                v.op == "call" and v.name in ("normalize", "cosine_similarity", "norm")
                for v in made_of(value.args[0], deep=False)
            )
            if products and normalised and (known >= 3 or 0 < known < 0.005):
                yield code.seen(ID, f"The similarities are divided by {known:g}.", value, value.args[1])
                return
