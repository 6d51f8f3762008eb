"""An average of the weights is judged and never updated.

What it sees
------------
An averaged copy of the network that is made, evaluated or saved, while nothing in the training loop updates it.

Why it matters
--------------
What is judged and kept is the network as it was at the start.

How it decides
--------------
An object of a known class of averages (ModelEma, AveragedModel, EMA, ...) whose update is called nowhere in the
program, and whose module is used.

When it is wrong
----------------
If the update happens inside a library.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import EMAS
from wheeltapper.program.play.value import choices
from wheeltapper.program.reading import Code

ID = "average-stands-still"
CAUSE: str | None = None
DECIDES = True

UPDATES = ("update", "update_parameters", "step", "step_ema", "set", "update_after_step", "ema_update")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for made in story.calls:
        if made.op != "call" or made.name not in EMAS or made.origin.startswith("?") or not story.complete:
            continue
        used = [c for name in UPDATES for c in story.named(name) if c.args and any(one is made for one in choices(c.args[0]))]
        read = [c for c in story.calls if c.order > made.order and any(a.op == "attr" and a.args and a.args[0] is made for a in c.args)]
        read += [c for c in story.calls if c.op == "net" and c.order > made.order and c.args and c.args[0] is made]
        steps = [s for s in story.named("step") if s.loops]
        if not used and steps and read:
            yield code.seen(ID, f"{made.name} is never updated: it keeps the weights of the start.", steps[-1], made, read[0])
            return
