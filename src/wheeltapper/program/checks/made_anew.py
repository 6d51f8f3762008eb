"""The optimizer is made anew inside the training loop.

What it sees
------------
An optimizer (or the network) that is built inside the loop that trains it.

Why it matters
--------------
Its state (momentum, second moments) is lost each time; a network that is made anew forgets everything.

How it decides
--------------
The optimizer's constructor lies in a loop around the backward pass in which the network it moves was not made: so it
is no loop over folds or seeds.

When it is wrong
----------------
Restarts of the optimizer that are made on purpose.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.program import callee
from wheeltapper.program.reading import Code

ID = "made-anew"
CAUSE: str | None = None
DECIDES = True
RESETS = {"load_state_dict", "apply", "reset_parameters", "init_weights", "initialize", "reset"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for optimizer in story.optimizers:
        if not optimizer.loops or optimizer.guards or not _written_inside(optimizer) or _by_a_framework(optimizer):
            continue
        around = [call for call, _ in story.backwards if optimizer.loops == call.loops[: len(optimizer.loops)]]
        nets = [n for n in story.moved_by(optimizer) if n.op in ("obj", "call")]
        fresh = [
            c
            for c in story.calls
            if c.loops[: len(optimizer.loops)] == optimizer.loops
            and (c.name in RESETS or c.name.endswith("_"))
            and c.order < optimizer.order
        ]
        if (
            around
            and nets
            and not fresh
            and all(len(n.loops) < len(optimizer.loops) for n in nets)
            and story.steps_of(optimizer)
        ):
            every_step = any(call.loops == optimizer.loops for call in around)
            yield code.seen(
                ID, f"{optimizer.name} is made anew in every turn of the loop: its state is lost each time.", optimizer, around[0],
                grade="is" if every_step else "suspected",
            )  # fmt: skip
            return


def _by_a_framework(optimizer: Val) -> bool:
    """Where gradients are values (jax, a tape), the call that takes them stands for the optimizer, whose state lies elsewhere."""
    node = optimizer.node
    return not isinstance(node, ast.Call) or callee(node) != optimizer.name


def _written_inside(optimizer: Val) -> bool:
    """Whether the loop and the constructor stand in the same function: else the loop may start processes, or folds."""
    loop = optimizer.loops[-1].node
    return isinstance(loop, ast.For | ast.While) and any(n is optimizer.node for n in ast.walk(loop))
