"""Noise levels are drawn as a published recipe draws them.

What it sees
------------
`exp(randn(...) * s + m)`: a log-normal noise level, with the m and s of EDM or EDM2.

Why it matters
--------------
People who meet a noise level that is mostly between 0.1 and 1 take it for an error, and widen it. It is what EDM was
trained with.

How it decides
--------------
Mean and spread are read as numbers and compared with the published pairs: EDM -1.2 and 1.2; EDM2 -0.4 and 1.0, -0.8 and
1.6. It is no fault, and is told as expected.

When it is wrong
----------------
If the data are scaled otherwise than in the recipe (a standard deviation far from 0.5), the same levels mean another task.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "noise-as-published"
CAUSE = "sigma-data-mismatch"
DECIDES = False
# Mean and spread of ln σ: Karras et al. 2022 (table 1, training/loss.py of NVlabs/edm); Karras et al. 2024 (NVlabs/edm2, for 512
# and 64 pixels).
PUBLISHED = {(-1.2, 1.2): "EDM", (-0.4, 1.0): "EDM2", (-0.8, 1.6): "EDM2"}
NORMAL = {"randn", "randn_like", "standard_normal", "normal"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.program.calls.get("exp", []):
        drawn = _log_normal(code, call)
        if drawn is None or drawn not in PUBLISHED:
            continue
        mean, std = drawn
        low, middle, high = (math.exp(mean + z * std) for z in (-1.96, 0.0, 1.96))
        yield code.finding(
            ID,
            f"The noise levels are exp(N({mean:g}, {std:g}²)), as in {PUBLISHED[drawn]}: median {middle:.3g}, 95 % between {low:.2g} and "
            f"{high:.2g}.",
            call,
            severity="note",
            grade="expected",
            numbers={"P_mean": mean, "P_std": std},
        )
        return


def _log_normal(code: Code, call: ast.Call) -> tuple[float, float] | None:
    """m and s of exp(n * s + m), in either order and with either sign, where n is drawn from a standard normal; as a
    function of torch or as a method of the tensor."""
    inner = call.args[0] if call.args else call.func.value if isinstance(call.func, ast.Attribute) else None
    if not isinstance(inner, ast.BinOp) or not isinstance(inner.op, ast.Add | ast.Sub):
        return None
    sign = -1.0 if isinstance(inner.op, ast.Sub) else 1.0
    for product, shift in ((inner.left, inner.right), (inner.right, inner.left)):
        mean, std = code.values.number(shift), _scale(code, product)
        if mean is not None and std is not None:
            return (sign * mean if shift is inner.right else mean), abs(std)
    return None


def _scale(code: Code, node: ast.expr) -> float | None:
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult):
        return None
    for drawn, factor in ((node.left, node.right), (node.right, node.left)):
        if _normal(code, drawn) and (value := code.values.number(factor)) is not None:
            return value
    return None


def _normal(code: Code, node: ast.expr) -> bool:
    """Drawn from a standard normal, here or where the name was given its value."""
    if isinstance(node, ast.Call):
        return callee(node) in NORMAL
    rest = code.program.rest_of(node)
    sources = code.values.sources(rest) if rest is not None else None
    return bool(sources) and all(isinstance(s, ast.Call) and callee(s) in NORMAL for s in sources or ())
