"""The target of a bootstrapped loss lets gradients through.

What it sees
------------
`r + gamma * Q(s')` given to a loss as its target, where Q is trained and neither `no_grad` nor `detach` stands
between.

Why it matters
--------------
The step moves the target as well as the prediction; learning gets slow and often diverges.

How it decides
--------------
The target is a sum with a discounted output of a network; a gradient goes back from it to a network that an optimizer
moves.

When it is wrong
----------------
Residual-gradient methods do this on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap, learns_through
from wheeltapper.program.play.story import NUMBER_LOSSES, with_gradient
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "gradient-through-target"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call, loss in story.backwards:
        for value in with_gradient(loss):
            target = _target(value)
            if target is None:
                continue
            reached = {id(v) for v in with_gradient(target)}
            for total, _, _ in bootstrap(target):
                nets = learns_through(story, total) if id(total) in reached else []
                if nets:
                    yield code.seen(
                        ID,
                        "The bootstrapped target lets gradients through to the network that is trained towards it.",
                        nets[0],
                        value,
                        call,
                    )
                    return


def _target(value: Val) -> Val | None:
    if value.op == "call" and value.name in NUMBER_LOSSES and len(value.args) > 1:
        return value.args[1]
    if value.op == "bin" and value.name == "Pow" and value.args[0].op == "bin" and value.args[0].name == "Sub":
        return value.args[0].args[1]
    return None
