"""Gradients are cleared between the backward pass and the step.

What it sees
------------
`zero_grad()` after `backward()` and before `step()` of the same optimizer, in every turn of the loop.

Why it matters
--------------
The optimizer steps with gradients of zero: nothing is learned, except by weight decay.

How it decides
--------------
In the order in which one turn of the loop runs, the last backward pass before the step comes before the last clearing
before it, and nothing stands in conditions.

When it is wrong
----------------
If the step uses gradients that were copied away.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "zero-grad-before-step"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for optimizer in story.optimizers:
        for step in story.steps_of(optimizer):
            if not step.loops:
                continue
            before = [b for b, _ in story.backwards if b.order < step.order and _beside(b, step)]
            clears = [
                c
                for c in story.clears_of(optimizer)
                if c.order < step.order and _beside(c, step) and not _guarded(c, step)
            ]
            if before and clears and clears[-1].order > before[-1].order:
                yield code.seen(
                    ID,
                    "The gradients are cleared after the backward pass and before the step: the step uses zeros.",
                    clears[-1],
                    step,
                )
                return


def _beside(a: Val, b: Val) -> bool:
    """In the same turn of the same loop."""
    return a.loops[: len(b.loops)] == b.loops


def _guarded(a: Val, b: Val) -> bool:
    return len(a.guards) > len(b.guards)
