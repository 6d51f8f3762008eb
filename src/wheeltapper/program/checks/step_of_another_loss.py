"""An optimizer steps after a loss that its network is no part of.

What it sees
------------
`loss.backward(); optimizer.step()` where nothing in the loss depends on the parameters that this optimizer moves.

Why it matters
--------------
The network never learns from this loss; what gets the gradients is another one.

How it decides
--------------
There are several optimizers. The one that steps next after a backward pass moves known networks; the loss reaches
layers of other networks and none of its own.

When it is wrong
----------------
If gradients of an earlier loss are what it steps on; then another backward pass is near that reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.judge_does_not_reach import _belongs
from wheeltapper.program.play.signs import is_layer, reached
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "step-of-another-loss"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2 or not story.complete:
        return
    layers = {id(loss): [v.args[0] for v in reached(loss) if is_layer(v)] for _, loss in story.backwards}
    for optimizer in story.optimizers:
        moved = story.moved_by(optimizer)
        steps = story.steps_of(optimizer)
        if not steps or not moved or any(m.op not in ("obj", "call") or not story.is_network(m) for m in moved):
            continue
        mine = [pair for pair in story.backwards if any(_belongs(story, layer, moved) for layer in layers[id(pair[1])])]
        nearest = _last_before(story, steps[0])
        if mine or nearest is None or not layers[id(nearest[1])] or _opaque(nearest[1]):
            continue
        others = [n for o in story.optimizers if o is not optimizer for n in story.moved_by(o)]
        if not all(_belongs(story, layer, others) for layer in layers[id(nearest[1])]):
            continue
        text = f"{optimizer.name} steps after this loss, and its network is no part of it."
        yield code.seen(ID, text, nearest[1], nearest[0], steps[0])
        return


def _last_before(story: Story, step: Val) -> tuple[Val, Val] | None:
    before = [pair for pair in story.backwards if pair[0].order < step.order and pair[0].loops == step.loops]
    return before[-1] if before else None


def _opaque(loss: Val) -> bool:
    """Something in it is not known: a parameter of a function nobody calls, a library's network."""
    return any(v.op in ("param", "free", "gen", "obj") or v.name in ("Parameter", "ParameterDict", "ParameterList") for v in reached(loss))
