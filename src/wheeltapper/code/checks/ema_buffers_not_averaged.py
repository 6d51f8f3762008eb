"""An averaged model is evaluated with the live model's batch-norm statistics.

What it sees
------------
`AveragedModel(...)` without `use_buffers=True`, in a program with batch normalisation, with no `update_bn`, that
evaluates the average.

Why it matters
--------------
The running statistics are copied from the live model, which has other weights. The averaged model can then score
below the live one although its weights are better.

How it decides
--------------
All four are read from the code. How much it costs depends on how far the weights lie apart, so it is suspected.

When it is wrong
----------------
With a short horizon the difference is small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.code.conditions import part_reachable
from wheeltapper.code.program import argument
from wheeltapper.code.reading import Code
from wheeltapper.finding import Finding

ID = "ema-buffers-not-averaged"
BATCH_NORM = re.compile(r"BatchNorm[123]d|SyncBatchNorm|\bresnet\d+|\bResNet\d+|mobilenet|efficientnet", re.I)


def check(code: Code) -> Iterator[Finding]:
    if code.calls_any("update_bn"):
        return
    for part in code.made("AveragedModel"):
        buffers = argument(part.call, "use_buffers", 4)
        if buffers is not None or not part_reachable(code, part.call):
            continue
        evaluated = [e for e in code.loop.of("eval") if e.name in part.names]
        normed = any(BATCH_NORM.search(script.text) for script in code.program.scripts)
        if evaluated and normed:
            yield code.finding(
                ID,
                "AveragedModel copies batch-norm statistics from the live model (use_buffers is False) and is evaluated with them.",
                part.call,
                evaluated[0].node,
                severity="watch",
                grade="suspected",
            )
