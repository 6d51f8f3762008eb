"""Gradients are clipped while they are still multiplied by the loss scale.

What it sees
------------
`scaler.scale(loss).backward()`, then a clip, with no `scaler.unscale_(optimizer)` between them.

Why it matters
--------------
The gradients are larger by the loss scale (65,536 at the start), so a threshold of 1.0 clips them to almost
nothing: the effective threshold is the threshold over the scale, and changes whenever the scale does.

How it decides
--------------
In the order of the loop, on branches that can be taken together: the last backward pass before the clip is a
scaled one and nothing between them unscales. Clips that belong to Accelerate, Fabric or DeepSpeed unscale by
themselves and are left alone, and so is a scaler made with `enabled=False`.

When it is wrong
----------------
If gradients are divided by the scale by hand in a way that has no "unscale" in its name.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import reachable, together
from wheeltapper.program.loop import OWN_CLIP, Event
from wheeltapper.program.program import argument, callee, dotted_name
from wheeltapper.program.reading import Code

ID = "clip-before-unscale"
CAUSE = "clip-before-unscale"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    scalers = code.made("scaler")
    off = [s for s in scalers if (e := argument(s.call, "enabled")) is not None and code.values.value(e) is False]
    if off and len(off) == len(scalers):
        return
    if any("unscale" in name and name != "unscale_" for name in code.program.calls):
        return
    seen = set()
    for clip in code.loop.of("clip"):
        if clip.node in seen or OWN_CLIP.search(dotted_name(clip.node.func)) or not reachable(code, clip):
            continue
        before = [
            e for e in code.loop.events if e.order < clip.order and e.loops[:1] == clip.loops[:1] and together(e, clip)
        ]
        backward = next((e for e in reversed(before) if e.what == "backward"), None)
        if backward is None or not is_scaled(backward):
            continue
        if any(e.what == "unscale" and e.order > backward.order for e in before):
            continue
        seen.add(clip.node)
        yield code.finding(
            ID,
            "Gradients are clipped before scaler.unscale_(): the threshold applies to gradients times the loss scale.",
            clip.node,
            backward.node,
        )


def is_scaled(event: Event) -> bool:
    func = event.node.func
    return isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and callee(func.value) == "scale"
