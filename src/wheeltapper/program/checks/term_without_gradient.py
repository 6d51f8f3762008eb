"""A term of the loss has no gradient.

What it sees
------------
A term that is added to the loss and through which no gradient comes back to anything that is trained: it was detached,
computed without gradients, or made of counts and choices only.

Why it matters
--------------
The term changes the number that is shown and nothing else: the penalty, the balance, the physics is not learned.

How it decides
--------------
The loss is taken apart into what is added up. A term that is made of the outputs of trained networks, while every way
back to them is cut, and in which no parameter stands either, trains nothing.

When it is wrong
----------------
If the term is added for the record on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.signs import cuts, is_layer, reached, summands
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, breaks_graph, made_of
from wheeltapper.program.reading import Code

ID = "term-without-gradient"
CAUSE: str | None = None
DECIDES = True

UNKNOWN = {"param", "free", "obj", "space", "gen", "index"}
STARTS = {"zeros_like", "zeros", "new_zeros", "tensor", "full_like", "ones_like"}  # what a sum begins with, or a term that is switched off
NO_TENSORS = {"item", "numpy", "tolist"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if any("jax" in origin for names in code.program.imported.values() for origin in names.values()):
        return
    for _, loss in story.backwards:
        terms = list(summands(loss))
        alive = [t for t in terms if _may_learn(t)]
        for term in terms:
            if len(terms) > 1 and alive and term.name not in STARTS and not _may_learn(term) and _is_made_by_trained(story, term):
                cut = term if breaks_graph(term) else next(cuts(term), term)
                formula = next((v for v in reached(term) if v.op != "net"), term)
                text = "This term is added to the loss and has no gradient: nothing learns from it."
                yield code.seen(ID, text, cut, formula, term, loss)
                return


def _may_learn(term: Val) -> bool:
    return any(
        v.op in UNKNOWN or is_layer(v) or v.name in ("Parameter", "parameters") or "requires_grad" in v.kwargs
        for v in reached(term)
    )


def _is_made_by_trained(story: Story, term: Val) -> bool:
    parts = list(made_of(term))
    if any(v.op == "call" and v.name in NO_TENSORS for v in parts[:4]):
        return False
    return any(v.op == "net" and story.is_trained(v.args[0]) and story.in_training(v) for v in parts)
