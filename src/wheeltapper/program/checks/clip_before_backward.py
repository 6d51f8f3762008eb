"""Gradients are clipped before there are any.

What it sees
------------
A gradient clip between `zero_grad()` and `backward()`, and none between `backward()` and the step.

Why it matters
--------------
What is clipped are the gradients that were just cleared; the step is made with the new ones, whatever their size.

How it decides
--------------
Every clip in the loop comes before the backward pass of the same turn, and the gradients are cleared at that turn
or after each step.

When it is wrong
----------------
If gradients are carried from one turn to the next on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import together
from wheeltapper.program.reading import Code

ID = "clip-before-backward"
CAUSE: str | None = "clip-never-read"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for clip in code.loop.of("clip"):
        if not clip.loops:
            continue
        near = [
            e for e in code.loop.inside(clip.loops[-1], "backward", "step", "scaler-step", "clip") if together(e, clip)
        ]
        clips = [e for e in near if e.what == "clip"]
        backward = [e for e in near if e.what == "backward"]
        steps = code.loop.inside(clip.loops[-1], "step", "scaler-step")
        if backward and steps and all(c.order < b.order < s.order for c in clips for b in backward for s in steps):
            yield code.finding(
                ID, "Gradients are clipped before the backward pass that makes them.", clip.node, backward[0].node
            )
            return
