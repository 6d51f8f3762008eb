"""A callback sets a plain number that the traced step has already read.

What it sees
------------
A Keras callback that assigns to an attribute of the model which the training step or the loss reads.

Why it matters
--------------
The step is traced once, with the number of that time; later values are never seen.

How it decides
--------------
`self.model.name = ...` in a class built on Callback, where train_step, call or a function of the same class reads
`self.name`, and the model does not run eagerly.

When it is wrong
----------------
If the model is compiled with run_eagerly.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "number-in-a-traced-step"
CAUSE: str | None = "option-not-wired"
DECIDES = True

OF_KERAS = {"stop_training", "trainable", "optimizer", "loss", "name", "history"}


def check(code: Code) -> Iterator[Finding]:
    program = code.program
    if any("run_eagerly" in s.text for s in program.scripts):
        return
    models = [c for c in program.classes.values() if "train_step" in c.methods or "compute_loss" in c.methods]
    read = {n.attr for c in models for n in ast.walk(c.node) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    for cls in program.classes.values():
        if "Callback" not in cls.bases:
            continue
        for node in ast.walk(cls.node):
            if not (isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Attribute)):
                continue
            if node.value.attr == "model" and node.attr in read - OF_KERAS:
                yield code.finding(ID, f"The callback sets {node.attr} to a plain number, which the traced training step does not read again.", node)
                return
