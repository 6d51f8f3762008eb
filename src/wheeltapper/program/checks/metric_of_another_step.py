"""A metric is logged that this step never updates.

What it sees
------------
validation_step logs a metric object (or reads it at the end of the epoch) that only another step feeds; or feeds one
that it never logs.

Why it matters
--------------
What is shown as validation is empty or that of training; checkpoints are chosen by it.

How it decides
--------------
The metric objects of a LightningModule, by the steps that call or update them and the steps that log them. A metric
that is logged in a step must be fed in it.

When it is wrong
----------------
If a helper that cannot be seen feeds it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import Class, Func
from wheeltapper.program.reading import Code

ID = "metric-of-another-step"
CAUSE: str | None = "eval-broken"
DECIDES = True

ENDS = {"validation_step": ("on_validation_epoch_end", "validation_epoch_end"), "test_step": ("on_test_epoch_end",), "training_step": ("on_train_epoch_end",)}


def check(code: Code) -> Iterator[Finding]:
    for cls in code.program.classes.values():
        if not {"training_step", "validation_step"} <= cls.methods.keys():
            continue
        fed = {name: _fed(cls, step) for name in ENDS if (step := cls.methods.get(name)) is not None}
        for name, mine in fed.items():
            others = set().union(*(f for n, f in fed.items() if n != name))
            for where in (name, *ENDS[name]):
                method = cls.methods.get(where)
                for logged, node in _logged(method) if method is not None else ():
                    if logged not in mine and logged in _metrics(cls) and (mine & others or logged in others or mine - _all_logged(cls)):
                        wrong = [n for n in ast.walk(cls.methods[name].node) if isinstance(n, ast.Attribute) and n.attr in mine]
                        yield code.finding(ID, f"{name} logs {logged} and never updates it.", *(wrong[:1]), node)
                        return


def _all_logged(cls: Class) -> set[str]:
    return {logged for m in cls.methods.values() for logged, _ in _logged(m)}


def _metrics(cls: Class) -> set[str]:
    """Fields that are made in __init__ by a call."""
    init = cls.methods.get("__init__")
    return {
        t.attr for n in ast.walk(init.node) if isinstance(n, ast.Assign) and isinstance(n.value, ast.Call) for t in n.targets if isinstance(t, ast.Attribute)
    } if init is not None else set()


def _fed(cls: Class, step: Func) -> set[str]:
    """The fields that a step, or a method it calls, calls or updates."""
    out: set[str] = set()
    called = [m for n in ast.walk(step.node) if isinstance(n, ast.Call) and (m := cls.methods.get(_field(n.func) or "")) is not None]
    for method in (step, *called):
        for node in ast.walk(method.node):
            if isinstance(node, ast.Call):
                func = node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr in ("update", "forward") else node.func
                if (name := _field(func)) is not None:
                    out.add(name)
    return out


def _logged(method: Func) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(method.node):
        if isinstance(node, ast.Call) and _field(node.func) == "log" and len(node.args) > 1:
            given = node.args[1]
            given = given.func.value if isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute) and given.func.attr == "compute" else given
            if (name := _field(given)) is not None:
                yield name, node


def _field(node: ast.expr) -> str | None:
    """`name` of `self.name`."""
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self" else None
