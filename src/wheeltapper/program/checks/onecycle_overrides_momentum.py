"""OneCycleLR cycles the momentum, and the declared momentum is not used.

What it sees
------------
OneCycleLR (or CyclicLR) without `cycle_momentum=False` over an optimizer that was given a momentum or betas.

Why it matters
--------------
From its first moment the scheduler sets momentum (or beta1) itself, by default from 0.95 down to 0.85 and back.
A momentum option is then dead, and a comparison of momenta compares nothing.

How it decides
--------------
The scheduler's first argument is an optimizer made with an explicit momentum or betas, and neither
cycle_momentum, base_momentum nor max_momentum is given. A literal momentum is only noted; one that comes from
an option is worth watching.

When it is wrong
----------------
It states what torch does. Whether the cycled momentum is worse is another question.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.program import argument, dotted_name
from wheeltapper.program.reading import Code

ID = "onecycle-overrides-momentum"
CAUSE = "onecycle-overrides-momentum"
DECIDES = False
RANGES = {"OneCycleLR": (0.85, 0.95), "CyclicLR": (0.8, 0.9)}  # torch's defaults: base_momentum, max_momentum


def check(code: Code) -> Iterator[Finding]:
    for part in code.made("OneCycleLR", "CyclicLR"):
        given = {k.arg for k in part.call.keywords}
        if given & {"cycle_momentum", "base_momentum", "max_momentum", None} or not part_reachable(code, part.call):
            continue
        target = argument(part.call, "optimizer", 0)
        name = dotted_name(target).split(".")[-1] if target is not None else ""
        for optimizer in code.made("optimizer"):
            if name not in optimizer.names:
                continue
            declared = argument(optimizer.call, "momentum") or argument(optimizer.call, "betas")
            if declared is None:
                continue
            low, high = RANGES[part.made_by]
            value = code.values.value(declared)
            told = f" = {value}" if isinstance(value, int | float) else ""
            what = "momentum" if argument(optimizer.call, "momentum") is not None else "beta1"
            yield code.finding(
                ID,
                f"{part.made_by} cycles {what} between {high:g} and {low:g} (cycle_momentum is on by default): the declared "
                f"{ast.unparse(declared)}{told} is not used.",
                part.call,
                declared,
                severity="note" if isinstance(declared, ast.Constant | ast.Tuple) else "watch",
                numbers={"low": low, "high": high},
            )
            break
