"""The score of a critic is squeezed where it must be free.

What it sees
------------
A critic that ends in a sigmoid (or a tanh), in a hinge loss or a Wasserstein loss.

Why it matters
--------------
Such losses want scores without bounds: a hinge asks for more than one and less than minus one, a distance for any
difference. A score between nought and one cannot get there, and its gradient vanishes.

How it decides
--------------
The outputs of the critic, through what it returns, come straight from a sigmoid; the loss takes their mean, or a
hinge of them, and no logarithm or cross-entropy.

When it is wrong
----------------
If the score is rescaled afterwards; that is followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

LINEAR = {"mean", "sum", "relu", "squeeze", "view", "flatten", "reshape", "clamp", "clamp_min", "clip", "unsqueeze"}

ID = "score-bounded"
CAUSE: str | None = "output-activation-wrong"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2:
        return
    for _, loss in story.backwards:
        scores = list({id(s): s for s in _scores(loss, 0)}.values())
        critics = {id(s.args[0]) for s in scores if s.op == "net"}
        judged = [s for s in scores if s.op == "net" and any(_is_bounded(p) for p in produced(s))]
        if judged and _is_contrast(scores, critics):
            text = "The critic's score ends in a sigmoid; this loss needs scores without bounds."
            yield code.seen(ID, text, next(p for p in produced(judged[0]) if _is_bounded(p)), judged[0], loss)
            return


def _is_contrast(scores: list[Val], critics: set[int]) -> bool:
    """One network judges two things in one loss."""
    given = {id(s.args[1]) for s in scores if s.op == "net" and len(s.args) > 1}
    return len(critics) == 1 and len(given) > 1


def _is_bounded(value: Val) -> bool:
    return value.op == "call" and value.name == "sigmoid"


def _scores(value: Val, depth: int) -> Iterator[Val]:
    """The network outputs that go straight into a loss: through sums, means, hinges and weights."""
    if depth > 24:
        return
    if value.op == "net" and not _is_loss(value):
        yield value
    elif value.op == "net" and isinstance(value.data, Val):
        yield from _scores(value.data, depth + 1)
    elif value.op in ("phi", "unary") or (value.op == "bin" and value.name in ("Add", "Sub")):
        for one in value.args:
            yield from _scores(one, depth + 1)
    elif value.op == "bin" and value.name == "Mult":
        for one, other in (value.args, reversed(value.args)):
            if number(other) is not None:
                yield from _scores(one, depth + 1)
    elif value.op == "call" and value.name in LINEAR and value.args:
        yield from _scores(value.args[0], depth + 1)


def _is_loss(value: Val) -> bool:
    """A module that computes a loss: what it returns is a mean of something."""
    return isinstance(value.data, Val) and value.data.op == "call" and value.data.name == "mean" and any(v.op == "net" for v in made_of(value.data))
