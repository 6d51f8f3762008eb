"""The discriminator's loss reaches the generator.

What it sees
------------
The discriminator's loss on generated samples that are not detached.

Why it matters
--------------
Its backward pass also fills the generator's gradients, with those that make the fakes easier to tell. Unless they are
cleared before the generator's own pass, the generator learns to lose.

How it decides
--------------
Two optimizers; the loss whose step moves the judge is reached by a gradient from the other's network. A proof where
the generator's gradients are not cleared in between; else it only costs time, and is worth a look.

When it is wrong
----------------
Games in which both are meant to be moved by one loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import learns_through
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "generator-in-discriminator-loss"
CAUSE: str | None = "discriminator-wins"
DECIDES = False


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2 or any(
        c.name == "requires_grad_" or (c.name == "setattr" and c.args[1].data == "requires_grad") for c in story.calls
    ):
        return  # one alone, or networks that are frozen in turn
    for place, (call, loss) in enumerate(story.backwards):
        steps = [s for s in story.named("step") if s.order > call.order and s.loops == call.loops]
        if not steps or (place + 1 < len(story.backwards) and story.backwards[place + 1][0].order < steps[0].order):
            continue
        mover = next((o for o in story.optimizers if o in steps[0].args[:2]), None)
        if mover is None:
            continue
        mine = story.moved_by(mover)
        for other in story.optimizers:
            fed = _fed(story.moved_by(other), mine, learns_through(story, loss), code)
            if other is mover or fed is None:
                continue
            own = [b for b, _ in story.backwards if b is not call and b.loops == call.loops]
            clears = [c.order for c in story.clears_of(other)]
            later = own and not all(any(c < b.order and not c < call.order < b.order for c in clears) for b in own)
            cleared = not later
            yield code.seen(
                ID, "The loss of the judging network is not detached from the network it judges.", fed, call, mover,
                grade="suspected" if cleared or not later else "is",
            )  # fmt: skip
            return


def _fed(theirs: list[Val], mine: list[Val], nets: list[Val], code: Code) -> Val | None:
    """One network's output goes into another's, and only the second is stepped."""
    story = code.story
    for net in nets:
        if not any(story.holds(m, net.args[0]) for m in mine) or len(net.args) < 2:
            continue
        inner = learns_through(story, net.args[1])
        if any(story.holds(t, i.args[0]) for t in theirs for i in inner) and not any(
            story.holds(m, i.args[0]) for m in mine for i in inner
        ):
            return net
    return None
