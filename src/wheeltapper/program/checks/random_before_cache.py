"""Random changes are made once and kept.

What it sees
------------
A dataset whose records are changed at random and then cached: every epoch gets the same crops and flips again.

Why it matters
--------------
The augmentation does nothing: the network sees each record in one version only.

How it decides
--------------
The elements of what `.cache()` is called on are followed back; a random change among them is made before it is kept.

When it is wrong
----------------
If a fixed augmentation is wanted.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.preparation import random_steps
from wheeltapper.program.reading import Code

ID = "random-before-cache"
CAUSE: str | None = "same-batch-repeated"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("cache", "persist", "snapshot"):
        found = random_steps(call.args[0]) if call.args and call.op == "call" else []
        if found:
            yield code.seen(ID, f"{found[0].name} is done once, before the records are kept: every epoch sees the same ones.", call, found[0])
            return
