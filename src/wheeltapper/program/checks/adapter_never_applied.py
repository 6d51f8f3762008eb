"""The adapter is configured and never put in.

What it sees
------------
A `LoraConfig` (or another adapter's configuration) that nothing is given.

Why it matters
--------------
The whole model is trained with a rate meant for an adapter, or nothing is trained.

How it decides
--------------
The configuration is made, and no later call gets it.

When it is wrong
----------------
If it is handed over in a way that is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

ID = "adapter-never-applied"
CAUSE: str | None = "option-not-wired"
DECIDES = True

CONFIGS = {"LoraConfig", "AdaLoraConfig", "IA3Config", "PrefixTuningConfig", "PromptTuningConfig", "LoHaConfig"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for made in story.named(*CONFIGS):
        later = [
            c
            for c in story.calls
            if c is not made and any(v is made for a in (*c.args, *c.kwargs.values()) for v in (a, *made_of(a)))
        ]
        if not later and story.complete:
            yield code.seen(ID, f"{made.name} is made and given to nothing: the model has no adapter.", made)
            return
