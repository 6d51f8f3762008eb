"""No gradient reaches a network that should learn.

What it sees
------------
A network that an optimizer moves, whose output goes into the loss only through `no_grad`, `detach()`, `.item()`,
`.data` or a new tensor.

Why it matters
--------------
Its gradient is zero or missing at every step: its weights stay what they were.

How it decides
--------------
Every application of the network in the value that the backward pass starts from is followed; all of them lie behind
something that ends the graph.

When it is wrong
----------------
If another loss, which is not seen, reaches the network.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story, with_gradient
from wheeltapper.program.play.value import Val, breaks_graph, made_of
from wheeltapper.program.reading import Code

ID = "gradient-cut"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not story.losses or not all(any(v.op == "net" for v in made_of(loss)) for loss in story.losses):
        return
    for network in story.trained:
        parts = {id(p) for p in story.parts_of(network)}
        uses = [v for loss in story.losses for v in made_of(loss) if _applies(story, v, parts)]
        live = [v for loss in story.losses for v in with_gradient(loss) if _applies(story, v, parts)]
        if not uses or live:
            continue
        cut = _cut(story, parts)
        if cut is not None:
            how = "no_grad" if cut.no_grad and cut.op == "net" else cut.name or "no_grad"
            others = [v for v in uses if v.no_grad]
            yield code.seen(
                ID,
                f"The loss reaches this network only through {how}: no gradient comes back to it, and it never learns.",
                cut,
                network,
                *others[:1],
            )
            return


def _applies(story: Story, value: Val, parts: set[int]) -> bool:
    return value.op == "net" and (
        id(value.args[0]) in parts or any(id(p) in parts for p in story.parts_of(value.args[0]))
    )


def _cut(story: Story, parts: set[int]) -> Val | None:
    for loss in reversed(story.losses):
        for value in made_of(loss, stop=breaks_graph):
            if breaks_graph(value) and any(_applies(story, v, parts) for v in made_of(value)):
                return value
    return None
