"""The divergence from the prior is not lowest at the prior.

What it sees
------------
A KL term of a mean and a log-variance (or of a deviation) written out by hand, with a slip in it: a sign, a square, an
exponent.

Why it matters
--------------
A divergence is nought where the code is the prior and larger everywhere else. One that falls away from the prior
drives the code outwards without bound.

How it decides
--------------
The formula is worked out with numbers: at a mean of nought and a log-variance of nought, and around them. It must
not be lower around, with the sign with which it goes into the loss.

When it is wrong
----------------
If the prior is another one than the standard normal.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.formula import ends, worth_at
from wheeltapper.program.play.signs import signs_in
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "divergence-formula"
CAUSE: str | None = "objective-mismatch"
DECIDES = True
AROUND = ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0), (0.0, -1.0))


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        for formula, mean, spread in _formulas(loss):
            signs = signs_in(loss, formula)
            if len(signs) != 1:
                continue
            sign = signs.pop()
            at = [worth_at(formula, {id(mean): m, id(spread): s}) for m, s in ((0.0, 0.0), *AROUND)]
            if any(x is None for x in at):
                continue
            prior, *others = [sign * x for x in at if x is not None]
            if any(x < prior - 1e-6 for x in others):
                text = "The divergence from the prior is lower away from the prior than at it: its formula has a wrong sign or power."
                yield code.seen(ID, text, formula)
                return
            break


def _formulas(loss: Val) -> Iterator[tuple[Val, Val, Val]]:
    """Sums over a mean and a log-variance, the widest first: what is exponentiated stands beside the other one squared."""
    for value in made_of(loss):
        if value.op != "bin" or value.name not in ("Add", "Sub"):
            continue
        found = ends(value)
        if len(found) != 2 or not all(any(v.op == "net" for v in made_of(e)) for e in found):
            continue
        stops = {id(e) for e in found}
        parts = list(made_of(value, stop=lambda v, stops=stops: id(v) in stops))  # type: ignore[misc]
        spreads = [v.args[0] for v in parts if v.op == "call" and v.name == "exp" and v.args]
        bare = [e for e in found if any(s is e for s in spreads)]
        if len(bare) == 1 and any(_is_square(v, next(e for e in found if e is not bare[0])) for v in parts):
            yield value, next(e for e in found if e is not bare[0]), bare[0]


def _is_square(value: Val, of: Val) -> bool:
    if value.op == "bin" and value.name == "Pow":
        return value.args[0] is of
    if value.op == "bin" and value.name == "Mult":
        return value.args[0] is of and value.args[1] is of
    return value.op == "call" and value.name in ("pow", "square") and bool(value.args) and value.args[0] is of
