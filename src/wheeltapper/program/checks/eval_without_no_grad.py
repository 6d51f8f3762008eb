"""Validation builds gradients that nobody uses.

What it sees
------------
A loop over a validation loader that calls the model outside `torch.no_grad()` and `torch.inference_mode()`.

Why it matters
--------------
Validation takes about twice the memory it needs, and a loss summed without `.item()` keeps every graph alive until
the process runs out of memory.

How it decides
--------------
The loop is reached with no such context or decorator around it, none inside it, and gradients are not switched off
globally. Suspected, because some evaluations need gradients.

When it is wrong
----------------
For evaluations that differentiate (saliency, adversarial examples, test-time training).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.val_in_train_mode import validation_loops
from wheeltapper.program.reading import Code

ID = "eval-without-no-grad"
CAUSE = None
DECIDES = False
OFF = re.compile(r"no_grad|inference_mode|set_grad_enabled|backward|autograd\.grad|enable_grad")


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.calls_any("set_grad_enabled", "_set_grad_enabled"):
        return
    for loop in dict.fromkeys(validation_loops(code)):
        if code.loop.walked[loop] or OFF.search(ast.unparse(loop)):
            continue
        yield code.finding(
            ID,
            "Validation runs with gradients on: no torch.no_grad() around this loop.",
            loop,
            severity="note",
            grade="suspected",
        )
