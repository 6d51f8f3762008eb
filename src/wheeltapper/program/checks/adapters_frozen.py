"""The adapters are frozen.

What it sees
------------
A loop over the named parameters after the adapters were put in, that turns gradients off for them by name, or
leaves them on for others only.

Why it matters
--------------
The adapters are all there is to train. Frozen they stay at zero, and the base model answers as before.

How it decides
--------------
A peft model (or one with LoRA layers of the program) and a loop that sets requires_grad by a test of the name: the
names kept do not hold "lora" or "adapter", or the names frozen do.

When it is wrong
----------------
If gradients are turned on again by something unseen.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "adapters-frozen"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


ADAPTER = re.compile(r"lora|adapter|peft", re.I)


def check(code: Code) -> Iterator[Finding]:
    if not code.calls_any("get_peft_model", "add_adapter") and not any(ADAPTER.search(n) for n in code.program.classes):
        return
    for script in code.program.scripts:
        loops = [n for n in script.parents if isinstance(n, ast.For) and "named_parameters" in ast.unparse(n.iter)]
        if any(_turns(loop, on=True) for loop in loops if _frozen(loop) is None):
            continue
        for loop in loops:
            found = _frozen(loop)
            after = found is not None and _after_adapters(code, loop)
            if found is not None and after:
                yield code.finding(
                    ID,
                    "The loop turns off the gradients of the adapters, which are all there is to train.",
                    found,
                    loop,
                )
                return


def _after_adapters(code: Code, loop: ast.For) -> bool:
    made = [c for name in ("get_peft_model", "add_adapter") for c in code.program.calls.get(name, [])]
    return not made or any(
        c.lineno < loop.lineno for c in made if code.program.script_of[c] is code.program.script_of[loop]
    )


def _texts(node: ast.AST) -> list[str]:
    return [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]


def _frozen(loop: ast.For) -> ast.AST | None:
    """The statement that freezes what is called an adapter."""
    for node in ast.walk(loop):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).endswith("requires_grad"):
            names = _texts(node.value)
            if names and "not in" not in ast.unparse(node.value) and not any(ADAPTER.search(n) for n in names):
                return node
        if isinstance(node, ast.If) and (names := _texts(node.test)):
            kept = any(ADAPTER.search(n) for n in names)
            if " not in " not in ast.unparse(node.test) and kept and _turns(node, on=False, deep=node.body):
                return node
            if " not in " in ast.unparse(node.test) and not kept and _turns(node, on=False, deep=node.body):
                return node
    return None


def _turns(node: ast.AST, *, on: bool, deep: list[ast.stmt] | None = None) -> bool:
    text = "\n".join(ast.unparse(s) for s in (deep if deep is not None else [node]))
    return f"requires_grad = {on}" in text or f"requires_grad_({on})" in text or (on and "requires_grad_()" in text)
