"""The output cannot reach the data.

What it sees
------------
A generator or decoder that ends in a sigmoid while the pictures are scaled to -1..1.

Why it matters
--------------
Half of the range can never be made: the discriminator tells real from made by it, and a reconstruction stays off.

How it decides
--------------
The pictures are normalised with mean 0.5 and spread 0.5, and the last step of the network that is compared with
them is a sigmoid or ReLU.

When it is wrong
----------------
If the output is scaled afterwards out of sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "output-range-does-not-fit"
CAUSE: str | None = "output-activation-wrong"
DECIDES = True


POSITIVE = {"sigmoid", "relu", "softplus", "relu6"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    scaled = [c for c in story.named("Normalize") if _halves(c)]
    if not scaled or len(scaled) != len(story.named("Normalize")):
        return
    for loss in story.losses:
        for net in made_of(loss):
            if net.op != "net" or len(net.args) < 2 or not _judged(story.applications, net):
                continue
            for end in produced(net.args[1]):
                if (
                    end.op == "call"
                    and end.name in POSITIVE
                    and any(v.op == "net" and story.is_trained(v.args[0]) for v in made_of(end))
                ):
                    text = f"The pictures are scaled to -1..1 and what is made ends in a {end.name}: it never goes below 0."
                    yield code.seen(ID, text, end, scaled[0])
                    return


def _halves(call: Val) -> bool:
    given = [call.arg("mean", 0), call.arg("std", 1)]
    return all(g is not None and g.items and all(number(i) == 0.5 for i in g.items) for g in given)


def _judged(applications: list[Val], net: Val) -> bool:
    """Whether the same network is also applied to data from a loader."""
    return any(
        c.args[0] is net.args[0]
        and len(c.args) > 1
        and any(v.op in ("batch", "elem") for v in made_of(c.args[1], deep=False))
        and not any(v.op == "net" for v in made_of(c.args[1], deep=False))
        for c in applications
    )
