"""The network that is to be improved does not reach the one that judges it.

What it sees
------------
The loss of an actor or a generator: another network's score of what it makes, while no gradient comes back through
that score.

Why it matters
--------------
The score is then a number that the maker cannot change: it learns from what else is in the loss, or not at all.

How it decides
--------------
The optimizer that steps after this loss moves one network; the loss holds the answer of another network to what the
first one made; between the two the graph is cut: `detach`, `no_grad`, `sample()` where `rsample()` is meant.

When it is wrong
----------------
If the score is only a weight, as in advantage-weighted regression; it is then a factor beside a log-probability, and
such losses are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.signs import is_layer, reached, signs_in
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, breaks_graph, made_of
from wheeltapper.program.reading import Code

ID = "judge-does-not-reach"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2:
        return
    for call, loss in story.backwards:
        moved = _moved_after(story, call)
        for judge in made_of(loss, deep=False):
            if judge.op != "net" or judge.no_grad or not story.is_trained(judge.args[0]) or _belongs(story, judge.args[0], moved) or not signs_in(loss, judge):
                continue
            given = [*judge.args[1:], *judge.kwargs.values()]
            makers = [v for g in given for v in made_of(g) if v.op == "net" and _belongs(story, v.args[0], moved)]
            alive = [v for g in given for v in reached(g) if is_layer(v) and _belongs(story, v.args[0], moved)]
            if makers and not alive and moved:
                made = [g for g in given if any(v.op == "net" and _belongs(story, v.args[0], moved) for v in made_of(g))]
                cuts = [v for g in made for v in made_of(g, stop=breaks_graph) if breaks_graph(v)]
                cut = next((v for v in cuts if any(n.op == "net" and _belongs(story, n.args[0], moved) for n in made_of(v))), judge)
                text = "The network that this loss is to improve is cut off from the one that judges it: no gradient comes through the score."
                yield code.seen(ID, text, cut, judge, loss)
                return


def _moved_after(story: Story, backward: Val) -> list[Val]:
    """The networks that the next optimizer step after a backward pass moves."""
    steps = [(s.order, o) for o in story.optimizers for s in story.steps_of(o) if s.order > backward.order]
    if not steps:
        return []
    _, optimizer = min(steps, key=lambda pair: pair[0])
    return story.moved_by(optimizer)


def _belongs(story: Story, network: Val, moved: list[Val]) -> bool:
    return any(m is network or story.holds(m, network) for m in moved)
