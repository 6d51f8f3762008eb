"""Validation runs in training mode.

What it sees
------------
A loop over a validation loader in a program that never calls `eval()` on anything.

Why it matters
--------------
Dropout stays on and batch norm uses (and updates) batch statistics while validating: the numbers are worse and
noisier than the model, and validation leaks into its statistics.

How it decides
--------------
There is a training loop and a loop over a loader named for validation, and neither `eval()` nor `train(False)`
occurs in the program. With dropout or batch norm in the program's own code it is a fact; a network whose layers are all to be seen
and none of which has a mode needs no eval(); otherwise suspected, since
a model of layers without modes is unharmed.

When it is wrong
----------------
If the model is switched by a library the program hands it to.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.train_mode_not_restored import trained_models
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "val-in-train-mode"
CAUSE = "eval-in-train-mode"
DECIDES = True
VALIDATION = re.compile(r"(^|_)(val|valid|validation|eval|test|dev)(_|$)|^val|^test_?(loader|dl)", re.I)
MOVES = {"to", "cuda", "cpu", "float", "double", "half"}
MODES = re.compile(
    r"nn\.(Dropout\w*|BatchNorm\w*|SyncBatchNorm)\b|\b(ResNet|resnet|VGG|DenseNet|MobileNet|EfficientNet)\w*\("
)


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.made("engine") or not code.loop.backwards or not code.loop.complete:
        return
    if any(True for c in code.program.calls.get("eval", []) if isinstance(c.func, ast.Attribute)):
        return
    if any(c.args or c.keywords for c in code.program.calls.get("train", [])):
        return
    if any(re.search(r"(^|_)(eval|evaluating|inference)(_|$)", name) for name in code.program.calls):
        return  # set_eval_mode(model), with evaluating(model): a helper does it
    loops = validation_loops(code)
    if loops:
        layered = any(MODES.search(s.text) for s in code.program.scripts)
        if not layered and _all_ours(code):
            return
        yield code.finding(
            ID,
            "The model is validated without eval(): dropout and batch norm stay in training mode.",
            loops[0],
            grade="is" if layered else "suspected",
            severity="ill" if layered else "watch",
        )


def _all_ours(code: Code) -> bool:
    """Whether every trained network is a class of the program, whose layers can be seen, or of plain torch layers."""
    made = [value for name in trained_models(code) for value in _made(code, name)]
    return bool(made) and all(
        code.program.class_called(v) is not None or code.program.origin(v.func).startswith("torch.nn") for v in made
    )


def _made(code: Code, name: str) -> list[ast.Call]:
    """The calls that a network of this name comes from, through `.to(device)` and the like."""
    out = []
    for rest, values in code.program.writes.items():
        for value in values if rest[-1] == name else ():
            while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and callee(value) in MOVES:
                value = value.func.value
            if isinstance(value, ast.Call):
                out.append(value)
    return out


def validation_loops(code: Code) -> list[ast.For]:
    """Loops over a loader named for validation in which something is called on the batches."""
    out = []
    for loop in code.loop.walked:
        if not isinstance(loop, ast.For):
            continue
        names = {
            n.id if isinstance(n, ast.Name) else n.attr
            for n in ast.walk(loop.iter)
            if isinstance(n, ast.Name | ast.Attribute)
        }
        loaders = {n for n in names if re.search(r"loader|_dl$|dataloader", n, re.I)}
        by_loader = loaders and all(VALIDATION.search(n) for n in loaders)
        if (by_loader or (not loaders and _in_validation(code, loop))) and _calls_a_model(loop):
            out.append(loop)
    return out


def _in_validation(code: Code, loop: ast.For) -> bool:
    """Whether the loop is that of a function named for validation, in which gradients are off."""
    call = next((n for n in ast.walk(loop) if isinstance(n, ast.Call)), None)
    func = code.program.func_of[call] if call is not None else None
    return code.loop.walked.get(loop, False) and func is not None and bool(VALIDATION.search(func.name))


def _calls_a_model(loop: ast.For) -> bool:
    return any(isinstance(n, ast.Call) and re.search(r"model|net", callee(n), re.I) for n in ast.walk(loop))
