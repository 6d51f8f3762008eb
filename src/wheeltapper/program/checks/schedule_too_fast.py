"""A schedule laid out in epochs is stepped at every batch.

What it sees
------------
A scheduler whose length is the number of epochs and whose `step()` lies in the loop over batches, or one as long as
all batches that is stepped once per epoch.

Why it matters
--------------
The rate reaches its end within a few batches and stays there (or, for a cosine, swings up and down); or it hardly
moves at all.

How it decides
--------------
The length given to the scheduler is the very value that the loop over epochs runs to, and the step lies in a loop
inside of it; or it is a product with the length of the loader, and the step lies outside of the loop over that
loader.

When it is wrong
----------------
Never, where both are the same value.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.scheduler_wrong_unit import check as by_names
from wheeltapper.program.play.lineage import key
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "schedule-too-fast"
CAUSE: str | None = "schedule-unit-mismatch"
DECIDES = True

LENGTHS = {
    "CosineAnnealingLR": ("T_max", 1),
    "PolynomialLR": ("total_iters", 1),
    "LinearLR": ("total_iters", 3),
    "OneCycleLR": ("total_steps", 2),
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if any(True for _ in by_names(code)):
        return  # told there
    for made in story.named(*LENGTHS):
        length = made.arg(*LENGTHS[made.name])
        steps = [c for c in story.named("step") if c.args[0] is made and c.loops]
        if length is None or not steps or any(s.guards for s in steps):
            continue
        step = steps[0]
        turns = [
            t
            for t in step.loops
            if t.over is not None and t.over.op == "call" and t.over.name in ("range", "trange", "tqdm")
        ]
        outer = next((t for t in turns if _runs_to(t.over, length)), None)
        inside = outer is not None and step.loops.index(outer) < len(step.loops) - 1
        if inside and number(length) is not None and _is_batch_loop(code, step.loops[-1]):
            yield code.seen(
                ID,
                f"{made.name} is {number(length):g} steps long, the number of epochs, and is stepped at every batch.",
                step,
                made,
            )
            return
        counted = any(v.op == "call" and v.name == "len" for v in made_of(length))
        beside = any(s.loops == step.loops for o in story.optimizers for s in story.steps_of(o))  # once per update
        if counted and not beside and not any(_is_batch_loop(code, t) for t in step.loops) and story.training_loops:
            yield code.seen(
                ID, f"{made.name} is as long as all batches together, and is stepped once per epoch.", step, made
            )
            return


def _runs_to(over: Val | None, length: Val) -> bool:
    ends = over.args[-1:] if over is not None and len(over.args) < 3 else ()
    return any(e is length or (key(e) == key(length) and number(e) is not None and e.node is length.node) for e in ends)


def _is_batch_loop(code: Code, turn: object) -> bool:
    return any(turn is t for t in code.story.training_loops)
