"""The random numbers start anew in every step.

What it sees
------------
A seed that is set to the same number inside the training loop.

Why it matters
--------------
Every step draws the same noise, the same dropout and the same samples.

How it decides
--------------
`manual_seed` (or numpy's, or Python's) with a value that does not change, inside a loop with a backward pass.

When it is wrong
----------------
If the same noise in every step is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

ID = "seed-in-loop"
CAUSE: str | None = None
DECIDES = True

SEEDS = {"manual_seed", "manual_seed_all", "seed_everything", "set_seed", "seed"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named(*SEEDS):
        if (
            (call.origin.startswith(".") and call.name != "seed")
            or not story.in_training(call)
            or call.guards
            or call.no_grad
        ):
            continue
        if (
            call.args
            and not any(v.op in ("index", "elem", "phi") or v.op == "bin" for a in call.args for v in made_of(a))
            and call.origin.split(".")[0] in ("torch", "numpy", "random", "lightning", "transformers")
        ):
            yield code.seen(ID, "The seed is set to the same number in every step.", call)
            return
