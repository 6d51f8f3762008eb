"""Layers were put in after the optimizer was made.

What it sees
------------
A network gets new layers (adapters, a head) after an optimizer was given its parameters.

Why it matters
--------------
The optimizer has the old list: the new layers are never moved.

How it decides
--------------
In the order of the program, a layer is set as a field of the network (or inside it) after the optimizer is made from
the network's parameters, and no later optimizer or group takes them up.

When it is wrong
----------------
If the layer is not to be trained.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import choices, made_of
from wheeltapper.program.reading import Code

ID = "optimizer-before-parameters"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for optimizer in story.optimizers:
        nets = story.moved_by(optimizer)
        if any(o.order > optimizer.order for o in story.optimizers) or story.named("add_param_group"):
            continue
        for call in story.named("setattr"):
            made = call.args[2]
            if (
                call.order < optimizer.order
                or call.inside[-1:] == ("__init__",)
                or not (made.op in ("obj", "call") and story.is_network(made))
            ):
                continue
            if any(v is n for n in nets for one in made_of(call.args[0]) for v in choices(one)):
                yield code.seen(
                    ID, "This layer is put in after the optimizer was made: it is never moved.", call, optimizer
                )
                return
