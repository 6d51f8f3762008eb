"""A layer in the optimizer never gets a gradient.

What it sees
------------
A layer with weights that the optimizer holds and that the network applies only where gradients are off.

Why it matters
--------------
It stays at its random start while the rest of the network is trained on what it makes.

How it decides
--------------
Every application of the layer in making the loss lies under `no_grad`, inside of a forward pass whose result goes on
to layers that do learn; nothing loads or freezes the layer.

When it is wrong
----------------
If a random fixed projection is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.network_left_out import WEIGHTED, settled
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "trained-without-gradient"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    applied: dict[int, list[Val]] = {}
    for loss in story.losses:
        for value in made_of(loss):
            layer = value.args[0] if value.op == "net" else None
            if layer is not None and layer.op == "call" and layer.name in WEIGHTED and "forward" in value.inside:
                applied.setdefault(id(layer), []).append(value)
    quiet = [vs for vs in applied.values() if all(v.no_grad for v in vs)]
    loud = [vs for vs in applied.values() if not any(v.no_grad for v in vs)]
    for values in quiet:
        layer = values[0].args[0]
        owners = {v.inside for v in values}
        together = any(v.inside in owners or _same_forward(v, values[0]) for vs in loud for v in vs)
        if together and story.is_trained(layer) and "@copied" not in layer.fields and not settled(code, layer):
            text = f"This {layer.name} is in the optimizer and is applied only where gradients are off: it never learns."
            yield code.seen(ID, text, values[0], layer)
            return


def _same_forward(a: Val, b: Val) -> bool:
    return a.sites[:1] == b.sites[:1]
