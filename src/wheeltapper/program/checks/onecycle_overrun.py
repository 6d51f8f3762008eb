"""OneCycleLR is stepped more often than it is laid out for, and raises.

What it sees
------------
OneCycleLR with a total of epochs × len(loader) that is stepped at every batch and once more before training;
or whose total leaves out the epochs, or divides by an accumulation that the stepping does not follow.

Why it matters
--------------
OneCycleLR raises ValueError on the first step past its total ("Tried to step 37501 times"): the run dies on
its last batch, before the last validation and checkpoint.

How it decides
--------------
Total and loops are compared factor by factor, so no number needs to be known: the batch loop runs over the same
loader, the loop around it as many epochs, every turn steps once. One step before training makes one too many. A
guard `step < total` allows all of them and changes nothing.

When it is wrong
----------------
If the run always stops early, or the last batch of an epoch is skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.scheduler_stepped_in_init import early_steps
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.horizons import horizon_of, loops_match, step_is_plain, steps_of
from wheeltapper.program.reading import Code

ID = "onecycle-overrun"
CAUSE = "onecycle-overrun"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for part in code.made("OneCycleLR"):
        horizon = horizon_of(code, part)
        if horizon is None or not part_reachable(code, part.call) or code.by_framework:
            continue
        steps = steps_of(code, part)
        if not steps or not all(step_is_plain(code, e, horizon) for e in steps):
            continue
        early = [e for p, e in early_steps(code) if p is part]
        total = ast.unparse(horizon.node)
        if early and any(loops_match(code, e, horizon) for e in steps):
            yield code.finding(
                ID,
                f"OneCycleLR has {total} steps; it is stepped once before training and then at every batch of every epoch: the "
                "last batch of the run is one step too many and raises ValueError.",
                early[0].node,
                steps[0].node,
                horizon.node,
            )
        elif set(horizon.factors) == {f for f in horizon.factors if f.startswith("len(")} and _repeats(steps[0].loops):
            yield code.finding(
                ID,
                f"OneCycleLR has {total} steps, one epoch, and is stepped at every batch of several epochs: the first step of the "
                "second epoch raises ValueError.",
                steps[0].node,
                horizon.node,
            )


def _repeats(loops: tuple[ast.AST, ...]) -> bool:
    """A loop over epochs around the batch loop."""
    return len(loops) == 2 and isinstance(loops[0], ast.For) and "epoch" in ast.unparse(loops[0].target).lower()
