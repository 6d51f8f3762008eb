"""The held-out data is encoded by a fit of its own.

What it sees
------------
`fit_transform` on the validation or test data, beside one on the training data.

Why it matters
--------------
The same number then means another thing in the two parts: another mean, another scale, another category.

How it decides
--------------
A scaler or encoder is fitted on a value named for validation or test, and one on the training data.

When it is wrong
----------------
If the parts are meant to be scaled each by itself.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "fitted-again"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True


HELD = re.compile(r"(^|_)(val|valid|validation|test|te|dev|holdout|eval)(_|$|\d)|(val|test|te)$", re.I)
TRAIN = re.compile(r"(^|_)(train|tr|trn|fit)(_|$|\d)|train", re.I)


def check(code: Code) -> Iterator[Finding]:
    fits = [c for c in code.program.calls.get("fit_transform", []) if c.args]
    fits += [
        c for c in code.program.calls.get("fit", []) if c.args and len(c.args) == 1 and "caler" in ast.unparse(c.func)
    ]
    held = [c for c in fits if HELD.search(_name(c.args[0])) and not TRAIN.search(_name(c.args[0]))]
    train = [c for c in fits if TRAIN.search(_name(c.args[0]))]
    for call in held:
        other = next((c for c in train if _kind(c) == _kind(call)), None)
        if other is not None:
            text = f"{_name(call.args[0])} is encoded by a fit of its own, not by that of the training data."
            yield code.finding(ID, text, call, other)
            return


def _name(node: ast.expr) -> str:
    """`valid` of `valid[c]`, `X_test` of `X_test.values`."""
    while isinstance(node, ast.Subscript | ast.Attribute | ast.Call):
        node = node.value if not isinstance(node, ast.Call) else node.func
    return node.id if isinstance(node, ast.Name) else ""


def _kind(call: ast.Call) -> str:
    return ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
