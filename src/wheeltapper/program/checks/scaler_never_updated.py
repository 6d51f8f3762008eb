"""The loss scale is never updated.

What it sees
------------
`scaler.step(optimizer)` without `scaler.update()`.

Why it matters
--------------
The scale stays where it began: after an overflow every step is skipped, and torch refuses the next `unscale_()`.

How it decides
--------------
A GradScaler steps in the training loop and nothing in the program updates one.

When it is wrong
----------------
If the update is made by something unseen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import choices
from wheeltapper.program.reading import Code

ID = "scaler-never-updated"
CAUSE: str | None = "static-loss-scale"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    steps = [e for e in code.loop.of("scaler-step") if e.loops]
    updated = [c for c in code.story.named("update") if c.args and any(one.name == "GradScaler" for one in choices(c.args[0]))]
    seen = code.story.complete and any(c.args and c.args[0].name == "GradScaler" for c in code.story.named("step"))
    unknown = not seen and "update" in code.program.calls
    if steps and code.made("GradScaler") and not code.loop.of("scaler-update") and not updated and not unknown:
        yield code.finding(
            ID, "The GradScaler steps and is never updated: its scale cannot fall after an overflow.", steps[0].node
        )
