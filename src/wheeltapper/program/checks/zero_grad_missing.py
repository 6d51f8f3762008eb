"""Gradients are never cleared.

What it sees
------------
A loop with a backward pass and an optimizer step, in which nothing clears the gradients.

Why it matters
--------------
Every step is made with the sum of all gradients so far. SGD diverges; Adam behaves as with endless momentum.

How it decides
--------------
The optimizer is one of torch's own, backward and step lie in the same loop, and no `zero_grad`, no
`grad = None` and no zeroing of `.grad` lies in that loop, in what it calls, or anywhere the walk did not reach.
Engines that clear gradients themselves (DeepSpeed) are left alone.

When it is wrong
----------------
If a wrapper made elsewhere clears them inside its own step.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.conditions import nodes_of
from wheeltapper.program.objects import is_known_optimizer, kind_of
from wheeltapper.program.reading import Code

ID = "zero-grad-missing"
CAUSE = "zero-grad-missing"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or _clears_by_hand(code):
        return
    yield from (list(_by_names(code)) or list(_one_of_several(code)))[:1]


def _one_of_several(code: Code) -> Iterator[Finding]:
    """One optimizer that steps and is never cleared, beside others that are."""
    story = code.story
    clears = story.named("zero_grad")
    if not clears and "zero_grad" in code.program.calls:
        return  # somewhere that the play did not come to
    if (
        not story.complete
        or code.made("engine")
        or any(c.args[0].op in ("param", "free", "attr", "elem", "item", "phi") for c in clears)
    ):
        return
    for optimizer in story.optimizers:
        steps = [s for s in story.steps_of(optimizer) if s.loops]
        if not steps or "configure_optimizers" in optimizer.inside or not story.moved_by(optimizer):
            continue
        nets = [p for n in story.moved_by(optimizer) for p in story.parts_of(n)]
        mine = [
            c for c in clears if c.args[0] is optimizer or any(p is n for n in nets for p in story.parts_of(c.args[0]))
        ]
        backward = [b for b, _ in story.backwards if b.loops]
        if not mine and backward:
            yield code.seen(
                ID,
                f"{optimizer.name} steps and its gradients are never cleared: each step uses the sum of all so far.",
                steps[0],
                backward[-1],
            )


def _by_names(code: Code) -> Iterator[Finding]:
    reached = {e.node for e in code.loop.of("zero_grad")}
    if any(call not in reached for call in code.program.calls.get("zero_grad", [])):
        return
    # The loop that steps: the batch loop itself, or the one around a loop of micro-batches.
    for loop in dict.fromkeys(e.loops[-1] for e in code.loop.of("step", "scaler-step") if e.loops):
        steps = [e for e in code.loop.inside(loop, "step", "scaler-step") if e.loops[-1] is loop]
        name = steps[0].name if steps[0].what == "step" else steps[0].argument
        others = {n for p in code.made("optimizer") if name not in p.names for n in p.names}
        clears = [e for e in code.loop.inside(loop, "zero_grad") if e.name not in others]
        if not code.loop.inside(loop, "backward") or clears:
            continue
        made = [p for p in code.made("optimizer") if name in p.names]
        if kind_of(steps[0].name, code.parts) == "engine" or not made:
            continue
        if not all(is_known_optimizer(code.program, p) for p in made):
            continue
        backward = code.loop.inside(loop, "backward")[0]
        yield code.finding(
            ID,
            f"The loop steps {name} after every backward pass and never clears the gradients: each step uses the sum of all "
            "gradients so far.",
            steps[0].node,
            backward.node,
        )
        return


def _clears_by_hand(code: Code) -> bool:
    for node in nodes_of(code.program, ast.Attribute):
        assert isinstance(node, ast.Attribute)
        if node.attr == "grad" and isinstance(node.ctx, ast.Store | ast.Del):
            return True
    return any(
        "grad" in ast.unparse(c.func)
        for name in ("zero_", "fill_", "detach_")
        for c in code.program.calls.get(name, [])
    )
