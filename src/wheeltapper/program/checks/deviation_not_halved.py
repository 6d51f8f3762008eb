"""The spread of the code is its variance.

What it sees
------------
`mu + eps * exp(logvar)` in a variational model whose KL term takes `logvar` for the logarithm of the variance.

Why it matters
--------------
The noise is the square of what the prior term believes: reconstruction and prior contradict each other.

How it decides
--------------
The factor beside fresh noise is `exp` of the very value that stands in the KL term, without a half.

When it is wrong
----------------
If the network's second output is the logarithm of the spread and the KL term says so too.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.kl_weight_extreme import divergence
from wheeltapper.program.play.derive import is_random, produced
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "deviation-not-halved"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        kl = divergence(loss)
        if kl is None:
            continue
        logvar = kl.args[1].args[0]
        for value in made_of(loss):
            if value.op != "bin" or value.name != "Mult":
                continue
            noisy = [any(is_random(v) for v in made_of(a, deep=False)) for a in value.args]
            other = [a for a, n in zip(value.args, noisy, strict=True) if not n or a.name == "exp"]
            if any(noisy) and any(
                o.op == "call" and o.name == "exp" and o.args and _same(o.args[0], logvar) for o in other
            ):
                yield code.seen(
                    ID,
                    "The noise is multiplied by the variance, not by the spread: the half is missing in the exponent.",
                    _exp(other),
                    value,
                )
                return


def _same(a: Val, b: Val) -> bool:
    return a is b or {id(v) for v in produced(a)} == {id(v) for v in produced(b)}


def _exp(values: list[Val]) -> Val:
    return next(v for v in values if v.op == "call" and v.name == "exp")
