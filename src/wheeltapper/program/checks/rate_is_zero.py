"""The learning rate is zero, or the betas are swapped.

What it sees
------------
An optimizer with a learning rate of 0, or Adam with a first beta above 0.99 and a second below it.

Why it matters
--------------
At a rate of zero nothing moves. With swapped betas the momentum is endless and the scale jumps.

How it decides
--------------
Literals or constants given to an optimizer of torch.

When it is wrong
----------------
If the rate is set later by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of, number
from wheeltapper.program.reading import Code

ID = "rate-is-zero"
CAUSE: str | None = "lr-too-low"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    by_hand = any(c.name == "setitem" and c.args[1].data == "lr" for c in story.calls)
    for optimizer in story.optimizers:
        given = optimizer.arg("lr", 1)
        rate = number(given)
        grouped = any(v.op == "dict" for v in made_of(optimizer.arg("params", 0)))
        if (
            rate is not None
            and given is not None
            and rate <= 0
            and not grouped
            and story.moved_by(optimizer)
            and not by_hand
            and not story.named("LambdaLR", "OneCycleLR")
        ):
            yield code.seen(ID, f"{optimizer.name} has a learning rate of {rate:g}.", given, optimizer)
            return
        betas = optimizer.kwargs.get("betas")
        pair = [number(b) for b in betas.items] if betas is not None and betas.items else []
        if len(pair) == 2 and pair[0] is not None and pair[1] is not None and pair[0] >= 0.99 and pair[1] < pair[0]:
            yield code.seen(
                ID, f"The betas are ({pair[0]:g}, {pair[1]:g}): they look swapped.", betas or optimizer, optimizer
            )
            return
