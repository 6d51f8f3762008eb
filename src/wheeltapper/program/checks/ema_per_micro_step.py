"""The average is updated at every micro-batch, the weights only once in several.

What it sees
------------
An optimizer step under gradient accumulation, and an update of the weight average outside of that condition.

Why it matters
--------------
Between two steps the weights stand still: n updates with the same weights make a decay of d one of d to the n. The average forgets n
times faster than was asked for.

How it decides
--------------
The step lies under `% n` with n an accumulation count that is not 1, the update of the average lies in the same loop and under no such
condition.

When it is wrong
----------------
If the decay was chosen for it, or the average itself looks whether a step was made.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import accumulating, conditional, every, reachable
from wheeltapper.program.reading import Code

ID = "ema-per-micro-step"
CAUSE = "ema-horizon-too-long"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.made("engine"):
        return
    for loop, count, step in accumulating(code):
        updates = [e for e in code.loop.inside(loop, "ema", "average") if e.loops[-1] is loop and reachable(code, e)]
        if updates and all(every(e, loop) is None and not conditional(e, loop) for e in updates):
            yield code.finding(
                ID,
                f"The average is updated at every micro-batch and the weights move every {ast.unparse(count)}: it forgets that many "
                "times faster than its decay says.",
                updates[0].node,
                step.node,
                severity="watch",
            )
            return
