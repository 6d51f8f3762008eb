"""Validation pictures are normalised otherwise than training pictures.

What it sees
------------
Two `Compose(...)` of transforms, one named for training and one for validation: only one holds a `Normalize`, or both do with other
numbers.

Why it matters
--------------
The network is judged on inputs of another mean and spread than it learned from. Training looks well and validation is at or near
chance.

How it decides
--------------
The lists are told apart by the name or the key they are kept under. Both must be written out as a list; a list that holds anything
but calls of known transforms, or that is changed afterwards, is left alone. Mean and spread are compared as written, names replaced
by what they were given.

When it is wrong
----------------
If the loader or the model normalises one of them elsewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.val_in_train_mode import VALIDATION
from wheeltapper.program.program import Program, callee, constant_text, dotted_name
from wheeltapper.program.reading import Code

ID = "val-normalised-otherwise"
CAUSE = "eval-normalisation-mismatch"
DECIDES = False
TRAIN = re.compile(r"(^|_)(train|training)(_|$)|^train", re.I)


def check(code: Code) -> Iterator[Finding]:
    if any("normaliz" in name.lower() and name != "Normalize" for name in code.program.calls):
        return  # it is also done by hand somewhere
    found: dict[str, list[tuple[ast.Call, ast.Call | None]]] = {"train": [], "val": []}
    for call in code.program.calls.get("Compose", []):
        name, steps = _kept_under(code.program, call), _steps(call)
        which = "train" if TRAIN.search(name) else "val" if VALIDATION.search(name) else None
        if which is not None and steps is not None:
            found[which].append((call, next((s for s in steps if callee(s) == "Normalize"), None)))
    if len(found["train"]) != 1 or len(found["val"]) != 1:
        return
    (train, one), (val, other) = found["train"][0], found["val"][0]
    if one is None and other is None:
        return
    if one is None or other is None:
        which = "training pictures are normalised and validation pictures are not"
        if one is None:
            which = "validation pictures are normalised and training pictures are not"
        yield code.finding(ID, f"The {which}.", other or val, one or train)
    elif (a := _numbers(code, one)) is not None and (b := _numbers(code, other)) is not None and a != b:
        yield code.finding(
            ID, "Training and validation pictures are normalised with other numbers.", other, one, severity="watch"
        )


def _kept_under(program: Program, call: ast.Call) -> str:
    """The variable, field or key that a value is kept under."""
    up = program.parent(call)
    if isinstance(up, ast.Assign):
        return dotted_name(up.targets[0]).split(".")[-1]
    if isinstance(up, ast.Dict):
        return next((constant_text(k) or "" for k, v in zip(up.keys, up.values, strict=True) if v is call), "")
    if isinstance(up, ast.Return):
        func = program.func_of[call]
        return (
            func.name
            if func is not None and len([n for n in ast.walk(func.node) if isinstance(n, ast.Return)]) == 1
            else ""
        )
    return ""


def _steps(call: ast.Call) -> list[ast.Call] | None:
    given = call.args[0] if call.args else None
    if not isinstance(given, ast.List) or not all(isinstance(e, ast.Call) for e in given.elts):
        return None
    steps = [e for e in given.elts if isinstance(e, ast.Call)]
    return steps if any(callee(s) in ("ToTensor", "PILToTensor", "ToImage", "ToTensorV2") for s in steps) else None


def _numbers(code: Code, call: ast.Call) -> list[object] | None:
    """Mean and spread as numbers; None where one cannot be read."""
    out: list[object] = []
    for node in (*call.args, *(k.value for k in call.keywords if k.arg in ("mean", "std"))):
        rest = code.program.rest_of(node)
        written = code.program.writes.get(rest, []) if rest is not None else []
        value = written[0] if len(written) == 1 else node
        try:
            out.append([float(v) for v in ast.literal_eval(value)])
        except (ValueError, TypeError, SyntaxError):
            return None
    return out
