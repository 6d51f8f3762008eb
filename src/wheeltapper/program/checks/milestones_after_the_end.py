"""The schedule has no step inside the run.

What it sees
------------
Milestones of a MultiStepLR, or the step size of a StepLR, beyond the last epoch.

Why it matters
--------------
The learning rate never falls during the run.

How it decides
--------------
The schedule is stepped once per epoch, and its first milestone is not below the number of epochs that the loop has.

When it is wrong
----------------
If the run is resumed with more epochs later on.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lengths import product, run_of_loops
from wheeltapper.program.play.value import Val, is_sure, number
from wheeltapper.program.reading import Code

ID = "milestones-after-the-end"
CAUSE: str | None = "milestones-never-reached"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    yield from _as_shares(code)
    for made in story.named("MultiStepLR", "StepLR"):
        first = _first(made)
        steps = [c for c in story.named("step") if c.args and c.args[0] is made]
        for step in steps:
            total = _turns(step)
            inner = {id(t) for c, _ in story.backwards for t in c.loops} - {id(t) for t in step.loops}
            if (
                first is not None
                and total is not None
                and inner
                and first > total - (made.name == "MultiStepLR")
                and is_sure(made)
            ):
                text = f"The first milestone is {first:g} and the loop has {total:g} epochs: the learning rate never falls."
                yield code.seen(ID, text, made, step, grade="is" if made.name == "MultiStepLR" else "suspected")
                return


def _as_shares(code: Code) -> Iterator[Finding]:
    """Milestones that are multiples of the run itself: `[epochs * 2, epochs * 3]`."""
    for made in code.story.named("MultiStepLR"):
        given = made.arg("milestones", 1)
        for step in (c for c in code.story.named("step") if c.args and c.args[0] is made and c.loops):
            run = run_of_loops(code.story, step)
            shares = [product(m).over(run) for m in given.items] if given is not None and given.items else []
            known = [s for s in shares if s is not None]
            if known and len(known) == len(shares) and min(known) > 1.01:
                text = f"The first milestone lies at {min(known):.3g} times the length of the run: the learning rate never falls."
                yield code.seen(ID, text, made, step, grade="is" if is_sure(made) else "suspected")
                return


def _first(made: Val) -> float | None:
    if made.name == "StepLR":
        return number(made.arg("step_size", 1))
    given = made.arg("milestones", 1)
    numbers = [number(i) for i in given.items] if given is not None and given.items else []
    return min((n for n in numbers if n is not None), default=None) if None not in numbers else None


def _turns(step: Val) -> float | None:
    """How often a step is made: the turns of the one loop around it."""
    over = step.loops[0].over if len(step.loops) == 1 and not step.guards else None
    while (
        over is not None
        and over.op == "call"
        and over.name in ("tqdm", "trange")
        and over.args
        and over.args[0].op == "call"
    ):
        over = over.args[0]
    if (
        over is None
        or over.op != "call"
        or over.name not in ("range", "trange")
        or not all(is_sure(a) for a in over.args)
    ):
        return None
    ends = [number(a) for a in over.args[:2]]
    if not ends or None in ends:
        return None
    return ends[0] if len(ends) == 1 else (ends[1] or 0) - (ends[0] or 0)
