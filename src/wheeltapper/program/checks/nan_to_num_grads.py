"""Gradients that are not finite are replaced by numbers.

What it sees
------------
`torch.nan_to_num` applied to `.grad`.

Why it matters
--------------
A NaN in the gradient then never reaches the log or the loss scaler: the run goes on with arbitrary updates, and
nothing in its record shows when it started. EDM does this on purpose.

How it decides
--------------
The call is there, with a gradient as its argument or output.

When it is wrong
----------------
It is a note, not a fault: known, it explains why a sick run shows no NaN.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "nan-to-num-grads"
CAUSE = "grads-sanitised"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    for name in ("nan_to_num", "nan_to_num_"):
        for call in code.program.calls.get(name, []):
            func = code.program.func_of[call]
            if func is not None and func.scope not in code.loop.scopes:
                continue  # not on the way of this training
            if any(isinstance(n, ast.Attribute) and n.attr == "grad" for n in ast.walk(call)):
                yield code.finding(
                    ID, "Gradients that are not finite are replaced by numbers: overflow leaves no trace in the record.",
                    call, severity="note",
                )  # fmt: skip
                return
