"""The average of the weights is updated by one process only.

What it sees
------------
An update of an average of the weights under a condition on the rank, in a program that trains on several processes.

Why it matters
--------------
It is taken for a fault of data-parallel training. It is none: after every update all processes hold the same weights, so
one average is the average of all. Only the process that has it may evaluate or save it.

How it decides
--------------
The condition around the update names a rank or the main process. It is told as expected.

When it is wrong
----------------
If another process evaluates its own copy of the average, which is then the first weights.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "ema-on-one-rank"
CAUSE = None
DECIDES = False
RANK = re.compile(
    r"\brank\b\s*==\s*0|_rank\s*==\s*0|is_main|is_master|master_process|is_global_zero|main_process|rank_zero"
)


def check(code: Code) -> Iterator[Finding]:
    for event in code.loop.of("ema"):
        guard = next((g for g in event.guards if g.taken and RANK.search(ast.unparse(g.node.test))), None)
        if guard is not None and event.loops:
            yield code.finding(
                ID,
                "The average is updated by one process only: expected here, because all processes hold the same weights after every update.",
                event.node,
                severity="note",
                grade="expected",
            )
            return
