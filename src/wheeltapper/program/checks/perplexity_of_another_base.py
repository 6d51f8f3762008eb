"""A perplexity is taken to another base than its loss.

What it sees
------------
`2 ** loss` or `10 ** loss` of a cross-entropy, which is in nats.

Why it matters
--------------
The perplexity is too small (or too large), and cannot be compared with any other.

How it decides
--------------
A power with the base 2 or 10 whose exponent is a cross-entropy, or the loss that a trainer reports, not divided by
log(2).

When it is wrong
----------------
If the loss was turned into bits before.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.reading import Code

ID = "perplexity-of-another-base"
CAUSE: str | None = "eval-broken"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for node in nodes_of(code.program, ast.BinOp, ast.Call):
        base, power = _power(node)
        if base is None or power is None:
            continue
        text = ast.unparse(power)
        if "loss" in text.lower() and "log" not in text and "bit" not in text.lower() and "scale" not in text.lower():
            yield code.finding(ID, f"{base} ** loss: the loss is in nats, its perplexity is exp(loss).", node)
            return


def _power(node: ast.AST) -> tuple[str | None, ast.expr | None]:
    match node:
        case ast.BinOp(left=ast.Constant(value=2 | 10 as base), op=ast.Pow(), right=power):
            return str(base), power
        case ast.Call(func=ast.Attribute(attr="pow" | "power"), args=[ast.Constant(value=2 | 10 as base), power]):
            return str(base), power
        case ast.Call(func=ast.Attribute(attr="exp2"), args=[power]):
            return "2", power
    return None, None
