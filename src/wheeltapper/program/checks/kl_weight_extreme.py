"""The prior counts for nothing, or for everything.

What it sees
------------
A variational model whose KL term has a weight of 0 (or is not in the loss), or of 20 and more.

Why it matters
--------------
Without it the code is no sample of the prior, and nothing can be generated; with too much the code carries nothing.

How it decides
--------------
The term of the loss that is made of `1 + logvar - mu^2 - exp(logvar)`, and the known factors in front of it.

When it is wrong
----------------
If the weight is raised or lowered during the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "kl-weight-extreme"
CAUSE: str | None = "kl-collapse"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        kl = divergence(loss)
        if kl is None:
            continue
        weights = [
            v
            for v in made_of(loss, deep=False)
            if v.op == "bin" and v.name == "Mult" and any(d is kl for d in made_of(v))
        ]
        for product in weights:
            for factor in product.args:
                known = number(factor)
                if known is not None and (known == 0 or known >= 20) and not any(v is kl for v in made_of(factor)):
                    yield code.seen(
                        ID,
                        f"The KL term has a weight of {known:g}.",
                        product,
                        factor,
                        grade="is" if known == 0 else "suspected",
                    )
                    return


def divergence(loss: Val) -> Val | None:
    """`1 + logvar - mu**2 - exp(logvar)` inside a loss, in any order and with either sign."""
    for value in made_of(loss):
        if value.op != "bin" or value.name not in ("Add", "Sub"):
            continue
        parts = list(_parts(value))
        for sign, exp in parts:
            if (
                exp.op == "call"
                and exp.name == "exp"
                and exp.args
                and any(s == -sign and v is exp.args[0] for s, v in parts)
            ):
                return value
    return None


def _parts(value: Val, sign: int = 1, depth: int = 0) -> Iterator[tuple[int, Val]]:
    if value.op == "bin" and value.name in ("Add", "Sub") and depth < 8:
        yield from _parts(value.args[0], sign, depth + 1)
        yield from _parts(value.args[1], sign if value.name == "Add" else -sign, depth + 1)
    else:
        yield sign, value
