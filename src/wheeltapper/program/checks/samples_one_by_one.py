"""Samples are put together one by one in Python inside the loop.

What it sees
------------
A batch that is built inside the training loop sample by sample, through lists or NumPy, from data that lies in memory.

Why it matters
--------------
Each sample costs Python calls and a copy: the accelerator waits for data most of the time.

How it decides
--------------
Inside a loop that trains, a comprehension over the sample numbers turns each sample into a list or an array and back into
a tensor. It is suspected: only the times tell whether it is the slowest part.

When it is wrong
----------------
If a step takes so long that the copies do not matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "samples-one-by-one"
CAUSE: str | None = "slow-data-loader"
DECIDES = True

MAKES = {"tensor", "as_tensor", "from_numpy", "FloatTensor", "array"}
THROUGH = {"tolist", "numpy", "item", "list", "deepcopy"}


def check(code: Code) -> Iterator[Finding]:
    inside = {n for loop in code.story.training_loops for n in ast.walk(loop.node)}
    for node in nodes_of(code.program, ast.ListComp):
        if node not in inside or not isinstance(node, ast.ListComp):
            continue
        calls = [c for c in ast.walk(node.elt) if isinstance(c, ast.Call)]
        made = any(callee(c) in MAKES for c in calls)
        if (
            made
            and any(callee(c) in THROUGH for c in calls)
            and any(isinstance(n, ast.Subscript) for n in ast.walk(node.elt))
        ):
            text = "The batch is put together sample by sample, through Python lists, at every step."
            yield code.finding(ID, text, node, grade="suspected", severity="watch")
            return
