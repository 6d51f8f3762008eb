"""Gradients are clipped after the optimizer has used them.

What it sees
------------
A clip that comes after the optimizer step of the same backward pass, and none before it.

Why it matters
--------------
Nothing is clipped: the step has been made with the raw gradients, and they are cleared before the next one.

How it decides
--------------
In the order of the loop, on branches that can be taken together: backward, step, clip, with no clip between
backward and step and no step after the clip.

When it is wrong
----------------
If the gradients are kept and used after the clip by something that is not an optimizer step.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import together
from wheeltapper.program.reading import Code

ID = "clip-after-step"
CAUSE = "clip-never-read"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    seen = set()
    for clip in code.loop.of("clip"):
        if not clip.loops or clip.node in seen:
            continue
        near = [
            e for e in code.loop.inside(clip.loops[-1], "backward", "step", "scaler-step", "clip") if together(e, clip)
        ]
        backward = next((e for e in reversed(near) if e.what == "backward" and e.order < clip.order), None)
        if backward is None:
            continue
        steps = [e for e in near if e.what in ("step", "scaler-step") and e.order > backward.order]
        clips = [e for e in near if e.what == "clip" and e.order > backward.order]
        if steps and all(e.order < clip.order for e in steps) and clips[0] is clip:
            seen.add(clip.node)
            yield code.finding(
                ID,
                "Gradients are clipped after the optimizer step, so the clip changes nothing.",
                clip.node,
                steps[0].node,
            )
