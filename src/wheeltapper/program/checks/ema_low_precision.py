"""The average of the weights is kept in half precision.

What it sees
------------
The averaged weights are turned to bf16 or fp16 where they are made, and updated in the training loop.

Why it matters
--------------
An update adds 1 - decay of the difference. bf16 has 8 significant bits and fp16 11: what is smaller than half of the last bit is
rounded away, so an average with decay 0.999 in bf16 hardly moves from its first weights.

How it decides
--------------
An assignment to the very object that the loop updates (a field of an average, the copy of the model that is averaged) holds
`.half()`, `.bfloat16()` or a `.to()` of such a type. Copies made for saving have another name and are not meant. Where the decay
can be read and 1 - decay is below half of the last bit it is a fact; otherwise suspected.

When it is wrong
----------------
If the average is turned back to fp32 before it is updated.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.averages import hand_decay, updates_of
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.program import callee, dotted_name
from wheeltapper.program.reading import Code

ID = "ema-low-precision"
CAUSE = "ema-low-precision"
DECIDES = True
LEAST = {"bf16": 1 / 512, "fp16": 1 / 4096}  # half of the last bit, as causes/ema_low_precision
SAVED = re.compile(r"save|export|strip|checkpoint|ckpt|upload|publish", re.I)


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework:
        return
    names = {
        n for p in code.made("ema") for n in p.names if any(e.name in p.names and e.loops for e in code.loop.of("ema"))
    }
    decays = set()
    for hand in code.hand_averages:
        if updates_of(code, hand):
            names |= {n for n in hand.names if re.search(r"ema|shadow|averag|avg", n, re.I)}
            decays.add(hand_decay(code, hand))
    if not names:
        return
    for node in nodes_of(code.program, ast.Assign):
        assert isinstance(node, ast.Assign)
        kind = _half(node.value) if _is_average(node.targets[0], names) else None
        func = code.program.func_of[node]
        if kind is None or (func is not None and SAVED.search(func.name)):
            continue
        if any(isinstance(n, ast.Call) and callee(n) == "float" for n in ast.walk(node.value)):
            continue
        known = decays.pop() if len(decays) == 1 else None
        lost = known is not None and 1 - known < 2 * LEAST[kind]
        yield code.finding(
            ID,
            f"The average of the weights is kept in {kind}: updates smaller than {LEAST[kind]:.1g} of a weight are rounded away"
            + (f", and the decay of {known:g} makes all of them so." if lost and known is not None else "."),
            node,
            grade="is" if lost else "suspected",
            severity="ill" if lost else "watch",
        )
        return


def _is_average(target: ast.expr, names: set[str]) -> bool:
    parts = dotted_name(target).split(".")
    return bool(names & set(parts)) and not isinstance(target, ast.Subscript)


def _half(value: ast.expr) -> str | None:
    """The half precision that an expression turns tensors to."""
    for call in (n for n in ast.walk(value) if isinstance(n, ast.Call)):
        name = callee(call)
        if name in ("half", "bfloat16") and not call.args:
            return "fp16" if name == "half" else "bf16"
        if name == "to":
            text = " ".join(ast.unparse(a) for a in (*call.args, *(k.value for k in call.keywords)))
            if re.search(r"torch\.(bfloat16|half|float16)\b", text):
                return "bf16" if "bfloat16" in text else "fp16"
    return None
