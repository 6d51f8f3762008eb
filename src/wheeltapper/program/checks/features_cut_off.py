"""A part of the trained network lies behind a cut.

What it sees
------------
Layers that the optimizer holds, that the loss is made of, and that no gradient reaches, because what they make is detached
on its way to the loss; other layers of the same network do learn.

Why it matters
--------------
Those layers stay at their random start, and the rest learns on random features.

How it decides
--------------
Every layer with weights is looked for in all losses, once with and once without what breaks the graph. Layers that were
loaded, frozen or are meant to stay (a teacher, a copy) are left alone; so is what runs under `no_grad`.

When it is wrong
----------------
If random features are what is wanted, as in a reservoir.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.network_left_out import WEIGHTED, settled
from wheeltapper.program.play.story import with_gradient
from wheeltapper.program.play.value import Val, breaks_graph, made_of
from wheeltapper.program.reading import Code

ID = "features-cut-off"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not story.complete:
        return
    live = {id(v.args[0]) for loss in story.losses for v in with_gradient(loss) if v.op == "net"}
    for loss in story.losses:
        for cut in (
            v for v in made_of(loss, stop=breaks_graph) if breaks_graph(v) and v.op == "call" and not v.no_grad
        ):
            dead = [
                v for v in made_of(cut) if _is_layer(v) and id(v.args[0]) not in live and story.is_trained(v.args[0])
            ]
            if not dead or any(settled(code, v.args[0]) for v in dead) or not _rest_learns(code, dead[0].args[0], live):
                continue
            text = f"{len({id(v.args[0]) for v in dead})} layers of the trained network lie behind {cut.name}: no gradient reaches them."
            yield code.seen(ID, text, cut, dead[0])
            return


def _is_layer(value: Val) -> bool:
    if value.op != "net" or value.no_grad:
        return False
    layer = value.args[0]
    return layer.op == "call" and layer.name in WEIGHTED and "@copied" not in layer.fields


def _rest_learns(code: Code, layer: Val, live: set[int]) -> bool:
    """Whether the network that holds the layer has other layers that learn."""
    story = code.story
    return any(story.holds(n, layer) and any(id(p) in live for p in story.parts_of(n)) for n in story.trained)
