"""The KL term has the wrong sign.

What it sees
------------
A variational loss in which the divergence from the prior is made larger.

Why it matters
--------------
The code is driven away from the prior without bound: the loss falls below zero.

How it decides
--------------
`1 + logvar - mu^2 - exp(logvar)` must go into the loss with a minus; it goes in with a plus.

When it is wrong
----------------
If the term is subtracted elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.kl_weight_extreme import divergence
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "kl-sign"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        kl = divergence(loss)
        if kl is None:
            continue
        signs = {t.sign for t in story.terms(loss) if t.value is kl.args[1]}
        if signs == {-1}:
            yield code.seen(
                ID,
                "The divergence from the prior goes into the loss with the wrong sign: it is made larger.",
                _product(loss, kl),
                kl,
            )
            return


def _product(loss: Val, kl: Val) -> Val:
    """The factor of one half that stands in front of it."""
    for value in made_of(loss):
        if (
            value.op == "bin"
            and value.name == "Mult"
            and any(n is not None and abs(n) == 0.5 for n in map(number, value.args))
            and any(v is kl for v in made_of(value))
        ):
            return value
    return kl
