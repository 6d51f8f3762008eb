"""Gradients are clipped to almost nothing.

What it sees
------------
A clipping threshold that no useful gradient is below: an element limit of 1e-4, a norm limit of 1e-4 and less.

Why it matters
--------------
With SGD the steps become as small as the limit, and the model hardly moves. Optimizers that divide by the size of the
gradient (Adam) hide a limit of the norm; a limit of each element leaves only the signs.

How it decides
--------------
The number stands in the code, or is the only value of an option, and the optimizer is one whose steps grow with the
gradient. With another optimizer it is suspected.

When it is wrong
----------------
If the loss is scaled down by as much.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import is_sure, number
from wheeltapper.program.reading import Code

ID = "clip-to-nothing"
CAUSE: str | None = "clip-too-small"
DECIDES = True

LIMIT = 1e-4
PLAIN = {"SGD", "ASGD", "RAdamScheduleFree"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named("clip_grad_value_", "clip_grad_norm_"):
        limit = call.arg("clip_value" if call.name == "clip_grad_value_" else "max_norm", 1)
        worth = number(limit)
        if worth is None or not 0 < worth <= LIMIT or not story.in_training(call) or limit is None:
            continue
        plain = all(o.name in PLAIN for o in story.optimizers) and bool(story.optimizers) and is_sure(limit)
        what = "Each element of the gradient" if call.name == "clip_grad_value_" else "The gradient's norm"
        yield code.seen(ID, f"{what} is limited to {worth:g}.", call, grade="is" if plain else "suspected")
        return
