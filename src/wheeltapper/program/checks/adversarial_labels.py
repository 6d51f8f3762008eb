"""The generator is trained to be found out.

What it sees
------------
A generator's loss that gives its fakes the label which the judge's loss gives to fakes; or a critic and a generator
that pull the same way.

Why it matters
--------------
Both networks work for the same side: the fakes get worse while both losses fall.

How it decides
--------------
The fakes' target in the generator's loss (ones, zeros, a constant) is the same as in the judge's loss; for critics
without labels, the sign of the judgement of the fakes is the same in both losses.

When it is wrong
----------------
If the judge is not used as a judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import learns_through
from wheeltapper.program.play.slopes import slope
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "adversarial-labels"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True


@dataclass(frozen=True)
class Mark:
    """How one loss judges one kind of sample: up (the loss falls with the judge's output) or down."""

    kind: str  # "fake" with the generator behind it learning, "held" fake, "real"
    up: bool
    judge: Val
    value: Val


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2:
        return
    marks = [mark for _, loss in story.backwards for mark in _marks(story, loss)]
    for mark in marks:
        rivals = [m for m in marks if m.kind == "held" and m.judge is mark.judge]
        if mark.kind == "fake" and rivals and all(m.up == mark.up for m in rivals):
            text = "The generator's loss gives the fakes the same mark as the judge's loss: both work for the judge."
            yield code.seen(ID, text, mark.value)
            return
        if mark.kind == "real" and rivals and all(m.up == mark.up for m in rivals):
            yield code.seen(
                ID, "The judge's loss gives real and made samples the same mark.", rivals[0].value, mark.value
            )
            return


def _marks(story: Story, loss: Val) -> Iterator[Mark]:
    for net in {v.order: v for v in made_of(loss) if v.op == "net" and v.order >= 0 and len(v.args) > 1}.values():
        judge = _mover(story, net.args[0])
        if judge is None or net.no_grad or not any(net.args[0] is n for n in story.moved_by(judge)):
            continue
        way = slope(loss, lambda v, net=net: v.op == "net" and v.order == net.order)  # type: ignore[misc]
        if not way:
            continue
        makers = [
            v
            for a in net.args[1:]
            for v in made_of(a)
            if v.op == "net" and _mover(story, v.args[0]) not in (None, judge)
        ]
        learning = {id(v) for v in learns_through(story, loss)}
        kind = "real" if not makers else "fake" if any(id(m) in learning for m in makers) else "held"
        yield Mark(kind, way < 0, net.args[0], net)


def _mover(story: Story, network: Val) -> Val | None:
    return next((o for o in story.optimizers if any(story.holds(n, network) for n in story.moved_by(o))), None)
