"""The optimizer moves a network that the loss does not use.

What it sees
------------
An optimizer made from the parameters of a network that no loss of the program is made of.

Why it matters
--------------
Its step changes nothing (there is no gradient), and the network that gets the gradients is moved by nobody.

How it decides
--------------
The networks that go into each backward pass are all known; the optimizer's network is none of them, and a network
that is there is in no optimizer.

When it is wrong
----------------
If the network is used in a way that cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "optimizer-of-another-network"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True
PUTS = ("setitem", "append", "add_module", "register_module", "insert", "extend", "update")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    used = {id(v.args[0]): v for loss in story.losses for v in made_of(loss) if v.op == "net" and not v.no_grad}
    if not used or not story.complete or _gradients_by_hand(story):
        return
    idle = [
        v
        for v in used.values()
        if story.is_network(v.args[0]) and not story.is_trained(v.args[0]) and _has_weights(v.args[0]) and v.order >= 0
    ]
    for optimizer in story.optimizers:
        nets = [n for n in story.moved_by(optimizer) if story.is_network(n)]
        if not nets or not story.steps_of(optimizer) or "configure_optimizers" in optimizer.inside:
            continue
        if len(nets) < len(story.moved_by(optimizer)) or any(_is_reached(story, n, used) for n in nets):
            continue
        here = {id(p) for n in nets for p in story.parts_of(n)}
        if here & set(used) or any(id(p) in here for v in used.values() for p in story.parts_of(v.args[0])):
            continue
        if idle:
            yield code.seen(
                ID,
                f"{optimizer.name} moves a network that no loss is made of; the one in the loss is moved by nobody.",
                optimizer,
                idle[0],
            )
            return


def _gradients_by_hand(story: Story) -> bool:
    """`mine.grad = theirs.grad`: the gradients of one network move another."""
    return any(c.args[1].data in ("grad", "_grad") for c in story.named("setattr"))


def _is_reached(story: Story, network: Val, used: dict[int, Val]) -> bool:
    """A part of a network in the loss that goes by a name (`model.head`), or one that was put where it may be used from."""
    root = network
    for _ in range(8):
        if root.op not in ("attr", "item", "elem", "batch") or not root.args:
            break
        root = root.args[0]
        if id(root) in used:
            return True
    parts = {id(p) for p in story.parts_of(network)}
    return any(id(a) in parts for c in story.named(*PUTS) for a in (*c.args[1:], *c.kwargs.values()))


def _has_weights(network: Val) -> bool:
    return network.op == "obj" or network.name not in (
        "Dropout",
        "Identity",
        "MaxPool2d",
        "AvgPool2d",
        "Upsample",
        "Flatten",
    )
