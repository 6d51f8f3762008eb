"""training_step returns no loss.

What it sees
------------
A LightningModule whose training_step ends without returning anything, while Lightning makes the steps itself.

Why it matters
--------------
Lightning skips the optimisation of every batch: nothing is learned.

How it decides
--------------
No return with a value in training_step (of the class or what it inherits from in the program), and automatic
optimisation is on.

When it is wrong
----------------
Never: Lightning takes what is not returned for a batch to be skipped.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class
from wheeltapper.program.reading import Code

ID = "step-returns-no-loss"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        step = cls.methods.get("training_step")
        if step is None or step.owner not in code.program.classes or not _is_module(code, cls):
            continue
        manual = "automatic_optimization" in cls.script.text
        returned = [n for n in ast.walk(step.node) if isinstance(n, ast.Return | ast.Yield) and n.value is not None]
        raised = any(isinstance(n, ast.Raise) for n in ast.walk(step.node)) or len(step.body) <= 1
        backward = [n for n in ast.walk(cls.node) if isinstance(n, ast.Attribute) and n.attr == "manual_backward"]
        if not manual and not returned and not raised:
            last = step.body[-1]
            yield code.finding(ID, "training_step returns nothing: Lightning skips the optimisation of every batch.", last, step.node)
            return
        if not manual and backward:
            init = cls.methods.get("__init__")
            yield code.finding(ID, "manual_backward is called and automatic optimisation is not switched off.", init.node if init else cls.node, backward[0], *(init.body if init else [])[:2])
            return


def _is_module(code: Code, cls: Class) -> bool:
    return "LightningModule" in code.story.player.bases(cls.name)
