"""The image size is scheduled, and the loaders are always built with the size of the first epoch.

What it sees
------------
A function that gives the image size of an epoch; loaders built with its value for a fixed epoch; and its value for the
current epoch used only in a message or a comparison, or never asked for.

Why it matters
--------------
Progressive resizing then does nothing: every epoch runs at the first size, at the first epoch's speed, and the log
claims otherwise.

How it decides
--------------
The function's name speaks of a size or resolution and it takes the epoch. Every call with a constant goes into a call
that builds something; every call with a variable only decides what is run or is shown. Or there is no call with a
variable at all, though the size depends on the epoch.

When it is wrong
----------------
If the loaders read the size from somewhere else as well.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "resize-not-applied"
CAUSE = "eval-resized-images"
DECIDES = True
SIZE = re.compile(r"image_?size|img_?size|resolution|input_?size|crop_?size|get_size", re.I)


RESUMED = re.compile(r"start|resume|initial", re.I)


WANTED = re.compile(r"progressive|resiz", re.I)


def check(code: Code) -> Iterator[Finding]:
    for name, funcs in code.program.functions.items():
        if SIZE.search(name) and any("epoch" in p or "step" in p for f in funcs for p in f.params):
            yield from _finding(code, name)


def _finding(code: Code, name: str) -> Iterator[Finding]:
    calls = [c for c in code.program.calls.get(name, []) if c.args]
    fixed = [c for c in calls if isinstance(c.args[0], ast.Constant)]
    # The size that a resume begins with says nothing of the epochs after it.
    moving = [
        c for c in calls if not isinstance(c.args[0], ast.Constant) and not RESUMED.search(ast.unparse(c.args[0]))
    ]
    if not fixed:
        return
    if not moving:
        if _depends(code, name) and {c.args[0].value for c in fixed if isinstance(c.args[0], ast.Constant)} == {0}:
            yield code.finding(
                ID,
                f"The image size is only ever asked for as {ast.unparse(fixed[0])}, the first epoch's, though it depends on the epoch: it "
                "never changes.",
                fixed[0],
                severity="watch",
            )
        return
    built = [c for c in fixed if isinstance(code.program.parent(c), ast.Call | ast.keyword | ast.Assign)]
    if len(built) != len(fixed):
        return
    for call in moving:
        trace = code.flow.trace([(call, "value")])
        if any(why != "decides what runs" for _, why in trace.acts):
            return
    asked = any(WANTED.search(name) for name in code.given)  # the run was started for it
    yield code.finding(
        ID,
        f"The loaders are always built with {ast.unparse(fixed[0])}; the size of the current epoch is only compared and logged, so the "
        "image size never changes.",
        fixed[0],
        *moving[:2],
        severity="ill" if asked else "watch",
        numbers={"asked": 1.0} if asked else {},
    )


def _depends(code: Code, name: str) -> bool:
    """Whether the size is chosen by a comparison or arithmetic with the epoch."""
    for func in code.program.functions[name]:
        epoch = next((p for p in func.params if "epoch" in p or "step" in p), None)
        used = [n for n in ast.walk(func.node) if isinstance(n, ast.Name) and n.id == epoch]
        if any(isinstance(code.program.parent(n), ast.Compare | ast.BinOp | ast.Subscript | ast.Call) for n in used):
            return True
    return False
