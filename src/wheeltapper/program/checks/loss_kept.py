"""Losses are kept with their whole graph.

What it sees
------------
`losses.append(loss)` or `total += loss` with the loss tensor itself, in a training loop.

Why it matters
--------------
Every graph of the epoch stays in memory: memory grows with each step until it is full, and steps get slower.

How it decides
--------------
The value that is added can be followed back to a trained network with gradients on, and what it is added to is never
the start of a backward pass.

When it is wrong
----------------
If gradients through the sum are wanted later.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import learns_through
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "loss-kept"
CAUSE: str | None = "memory-leak"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    used = {id(v) for loss in story.losses for v in made_of(loss)}
    sums = {v.node: v for loss in story.losses for v in made_of(loss) if v.op == "bin"}
    for call in story.named("append", "augment"):
        if len(call.args) < 2 or not story.in_training(call) or call.no_grad:
            continue
        box, value = call.args[0], call.args[1]
        if (call.name == "append" and (id(box) in used or box.op != "list")) or (
            call.name == "augment" and (call.node in sums or "+=" not in call.origin)
        ):
            continue
        kept = [v for v in (value, *(value.items or ())) if _is_loss(code, v) and learns_through(story, v)]
        if not kept or not _outside(box, call):
            continue
        text = "The loss is kept as it is, with all that its gradient would need: memory grows with every step."
        ever = call.name == "append" and not box.loops and not _emptied(code, box)
        yield code.seen(ID, text, call, numbers={"never_emptied": float(ever)})
        return


def DECIDES_IF(finding: Finding, resumed: bool) -> bool:  # noqa: N802, ARG001
    """A list that nothing ever empties grows to the end of the run."""
    return finding.numbers.get("never_emptied") == 1.0


def _emptied(code: Code, box: Val) -> bool:
    """Whether the name of the list gets another one inside a loop, or the list is cleared."""
    names = {
        n for rest, values in code.program.writes.items() if len(values) > 1 for n in rest[-1:] if box.node in values
    }
    return bool(names) or any(c.args and c.args[0] is box for c in code.story.named("clear", "pop", "popleft"))


def _is_loss(code: Code, value: Val) -> bool:
    """The value that a backward pass starts from, or a part of it."""
    return any(value is loss or any(value is t.value for t in code.story.terms(loss)) for loss in code.story.losses)


def _outside(box: Val, call: Val) -> bool:
    """Whether the box is older than this turn of the loop."""
    return len(call.loops) > len(box.loops)
