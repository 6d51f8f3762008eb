"""What is evaluated is not what is trained.

What it sees
------------
An evaluation, inside the training loop, of a network that no optimizer moves, while the trained one is never
evaluated.

Why it matters
--------------
The score says nothing about the training: it stays the same whatever happens.

How it decides
--------------
All scored applications without gradients are of networks made apart from the trained one, not copies, averages or
parts of it.

When it is wrong
----------------
If the network is loaded from the trained one out of sight.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "another-network-judged"
CAUSE: str | None = "eval-broken"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.evaluations or not story.trained:
        return
    loops = {id(t) for c, _ in story.backwards for t in c.loops[:1]}
    in_loss = {v.order for c in story.applications for v in [c] if story.in_training(c)}
    judged = [
        c
        for c in story.applications
        if c.no_grad and c.order in story.scored and c.order not in in_loss and len(c.loops) > 1
    ]
    judged = [
        c
        for c in judged
        if id(c.loops[0]) in loops and c.args[0].op in ("call", "obj") and not _follows(code, c.args[0])
    ]
    if judged:
        yield code.seen(
            ID, "The network that is evaluated is not the one that is trained.", judged[0], grade="suspected"
        )


def _follows(code: Code, network: Val) -> bool:
    """A copy or an average of a trained network, or one that takes over its weights."""
    if any(v is network for n in code.story.trained for part in code.story.parts_of(n) for v in part.fields.values()):
        return True  # held by a trained one, in a wrapper of a library
    if (
        code.story.is_trained(network)
        or "@copy" in network.fields
        or "@copied" in network.fields
        or network.name in ("AveragedModel", "deepcopy", "EMA")
    ):
        return True
    return any(
        c.loops and c.args and c.args[0] is network
        for c in code.story.named("load_state_dict", "update", "update_parameters", "copy_")
    )
