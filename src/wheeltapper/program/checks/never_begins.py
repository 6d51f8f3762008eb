"""Something is set to begin after the end.

What it sees
------------
Learning that starts, targets that are updated or exploration that ends after the last step of the run.

Why it matters
--------------
The agent never learns, or learns from the first targets only.

How it decides
--------------
The settings of one of stable-baselines3's algorithms against the `total_timesteps` of `learn()`.

When it is wrong
----------------
Never, where both numbers are those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import number
from wheeltapper.program.reading import Code

ID = "never-begins"
CAUSE: str | None = None
DECIDES = True

BEGINS = {"learning_starts": "learning starts", "target_update_interval": "the target network is first updated"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named("learn"):
        total = number(call.arg("total_timesteps", 1))
        maker = call.args[0] if call.args else None
        if total is None or maker is None or maker.op != "call":
            continue
        for name, what in BEGINS.items():
            at = number(maker.kwargs.get(name))
            if at is not None and at >= total:
                yield code.seen(
                    ID,
                    f"With {name} = {at:g}, {what} after the end: the run has {total:g} steps.",
                    maker.kwargs[name],
                    maker,
                    call,
                )
                return
