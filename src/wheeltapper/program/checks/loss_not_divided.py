"""Gradients are summed over micro-batches, not averaged.

What it sees
------------
An optimizer step every n-th micro-batch, and a loss that is never divided by n.

Why it matters
--------------
The gradient is n times that of the mean over the whole batch. SGD takes steps n times too long and a clip
threshold bites n times earlier. Adam hardly notices (its step does not depend on the gradient's scale).

How it decides
--------------
The step lies under `% n` where n is an accumulation count, the backward pass does not, and nothing in the
program divides by n or multiplies by its inverse.

When it is wrong
----------------
If the loss is already a sum that is normalised elsewhere, or the learning rate was chosen for the sum: hence
only suspected.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import accumulating, every, nodes_of
from wheeltapper.program.play.value import made_of, number
from wheeltapper.program.reading import Code

ID = "loss-not-divided"
CAUSE = "accumulation-not-divided"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.made("engine") or "deepspeed" in str(code.program.imported):
        return
    for loop, count, step in accumulating(code):
        backward = next(e for e in code.loop.backwards if e.loops[-1] is loop)
        if every(backward, loop) is not None:
            continue
        if not _divides(code, count) and not _scales_gradients(code):
            yield code.finding(
                ID,
                f"The optimizer steps every {ast.unparse(count)} micro-batches and the loss is not divided by it: the gradient is "
                "a sum, not a mean.",
                backward.node,
                step.node,
                severity="watch",
                grade="suspected",
            )
            return
    yield from _turns_of_a_range(code)


def _turns_of_a_range(code: Code) -> Iterator[Finding]:
    """`for _ in range(n): loss.backward()` with the step after it."""
    story = code.story
    for call, loss in story.backwards:
        turn = call.loops[-1] if len(call.loops) > 1 else None
        node = turn.node if turn is not None else None
        if turn is None or not isinstance(node, ast.For) or not isinstance(node.iter, ast.Call) or turn.over is None or turn.over.name != "range":
            continue
        steps = [c for c in story.named("step") if c.loops == call.loops[:-1] and any(c in story.steps_of(o) for o in story.optimizers)]
        unread = isinstance(node.target, ast.Name) and not any(
            isinstance(n, ast.Name) and n.id == node.target.id for s in node.body for n in ast.walk(s)
        )
        within = any(turn in c.loops for c in story.named("step", "zero_", "zero_grad"))
        if not steps or within or not unread or len(node.iter.args) != 1 or number(turn.over.args[0]) in (None, 1):
            continue
        text = f"The gradients of {ast.unparse(node.iter.args[0])} turns are added up and the loss is not divided by it."
        if not _divides(code, node.iter.args[0]):
            yield code.seen(ID, text, call, steps[0], severity="watch", grade="suspected")
            return
        data = [v for v in made_of(loss) if v.order >= 0 and v.op == "call" and turn in v.loops and v.name not in ("item",)]
        nets = [v for v in made_of(loss, deep=False) if v.op == "net" and len(v.args) > 1 and turn in v.loops]
        fresh = [v for n in nets for a in n.args[1:] for v in made_of(a, deep=False) if v in data or v.op in ("phi", "index")]
        if nets and not fresh:
            yield code.seen(ID, "Every turn of the accumulation goes over the same batch.", call, nets[0])
            return


def _scales_gradients(code: Code) -> bool:
    """The sum is made a mean afterwards: by a function named for it, or on the gradients themselves."""
    if any("scale" in name and "grad" in name for name in code.program.calls):
        return True
    named = ("div_", "mul_", "_foreach_div_", "_foreach_mul_")
    if any("grad" in ast.unparse(c) for name in named for c in code.program.calls.get(name, [])):
        return True
    return any(isinstance(n, ast.AugAssign) and ast.unparse(n.target).endswith((".grad", ".grad.data")) for n in nodes_of(code.program, ast.AugAssign))


def _divides(code: Code, count: ast.expr) -> bool:
    wanted = set(code.values.factors(count)) | {ast.unparse(count)}
    for node in nodes_of(code.program, ast.BinOp, ast.AugAssign):
        assert isinstance(node, ast.BinOp | ast.AugAssign)
        right = node.right if isinstance(node, ast.BinOp) else node.value
        if isinstance(node.op, ast.Div) and (wanted & set(code.values.factors(right)) or ast.unparse(right) in wanted):
            return True
    return any(
        wanted & set(code.values.factors(a))
        for name in ("div", "div_", "true_divide")
        for c in code.program.calls.get(name, [])
        for a in c.args
    )
