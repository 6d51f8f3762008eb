"""The change of volume goes into the density with the wrong sign, or for the whole batch.

What it sees
------------
A squashed policy or a flow: `log_prob(u) + log(1 - tanh(u)^2)` where a minus belongs, a log-determinant that is
summed over the batch, or that goes into the loss with the sign of the wrong direction.

Why it matters
--------------
The number is no log-density: entropy and likelihood move the wrong way, and the loss has no bottom.

How it decides
--------------
The formulas are worked out with numbers. What stands beside the log-probability of a sample that goes through tanh
must be minus the logarithm of the slope of tanh. A layer that gives its output and a log-determinant is followed: the
slope of the output by the input, and the sign with which the determinant goes into the loss, must agree. A sum over
everything beside sums for each sample is for the whole batch.

When it is wrong
----------------
If the layer is written for the other direction; the slope then says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.formula import ends, slope_at, worth_at
from wheeltapper.program.play.signs import signs_in
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "density-formula"
CAUSE: str | None = "wrong-jacobian-sign"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for found in (_squashed(story), _volumes(story)):
        for text, value, beside in found:
            yield code.seen(ID, text, value, beside)
            return


def _squashed(story: Story) -> Iterator[tuple[str, Val, Val]]:
    for _, loss in story.backwards:
        parts = list(made_of(loss))
        through = {id(v.args[0]) for v in parts if v.op == "call" and v.name == "tanh" and v.args}
        for value in parts:
            if value.op != "bin" or value.name not in ("Add", "Sub"):
                continue
            for one, other in (value.args, tuple(reversed(value.args))):
                drawn = one.args[1] if one.op == "call" and one.name == "log_prob" and len(one.args) > 1 else None
                loose = [e for e in ends(other) if e is not drawn]
                if drawn is None or id(drawn) not in through or len(loose) == len(ends(other)) or any(v.op == "net" for e in loose for v in made_of(e)):
                    continue
                worth = worth_at(value, {id(one): 0.0, id(drawn): 0.8, **{id(e): 1.0 for e in loose}})
                if worth is not None and abs(worth - math.log(1 - math.tanh(0.8) ** 2)) < 0.02:
                    yield "The logarithm of the slope of tanh is added to the log-probability; it must be subtracted.", value, one


def _volumes(story: Story) -> Iterator[tuple[str, Val, Val]]:
    for _, loss in story.backwards:
        for net in made_of(loss):
            if net.op != "net" or net.data is None or net.order < 0 or not isinstance(net.data, Val):
                continue
            whole = story.calls[net.order].data if net.order < len(story.calls) else None
            outputs = whole.items if isinstance(whole, Val) and whole.op == "tuple" else None
            if not outputs or len(outputs) != 2 or net.data is not outputs[1]:
                continue
            spread = _spread_of(outputs[0], outputs[1])
            if spread is None:
                continue
            if outputs[1].op == "call" and outputs[1].name == "sum" and len(outputs[1].args) == 1 and not outputs[1].kwargs and _by_sample(loss):
                yield "The log-determinant is summed over the whole batch, not for each sample.", outputs[1], net
            given = story.calls[net.order].args
            agrees = _agrees(outputs[0], outputs[1], spread, given[1]) if len(given) > 1 else None
            signs = signs_in(loss, net)
            if agrees is not None and len(signs) == 1 and signs != {-agrees}:
                yield "The log-determinant goes into the loss with the wrong sign.", _sum_of(loss, net), net


def _by_sample(loss: Val) -> bool:
    return any(v.op == "call" and v.name == "sum" and (len(v.args) > 1 or v.kwargs) for v in made_of(loss, deep=False))


def _sum_of(loss: Val, net: Val) -> Val:
    sums = [v for v in made_of(loss) if v.op == "bin" and v.name in ("Add", "Sub") and signs_in(v, net)]
    return sums[0] if sums else loss


def _spread_of(output: Val, volume: Val) -> Val | None:
    """What is exponentiated in the output and summed up in the log-determinant: a value that a network made."""
    inner = [v for v in made_of(output, deep=False) if v.op == "call" and v.name == "exp" and v.args]
    mine = {id(v) for v in made_of(volume, deep=False)}
    for exp in inner:
        for value in (exp.args[0], *exp.args[0].args):
            if id(value) in mine:
                return value
    return None


def _agrees(output: Val, volume: Val, spread: Val, entered: Val) -> int | None:
    """+1: the determinant is the logarithm of the output's slope by the input; -1: its negative."""
    given = {id(e): 0.0 for e in ends(output)}
    given.update({id(entered): 0.0, id(spread): 0.5})
    slope, told = slope_at(output, entered, given), worth_at(volume, given)
    if slope is None or slope <= 0 or told is None or abs(told) < 1e-6:
        return None
    return 1 if abs(math.log(slope) - told) < 1e-3 else -1 if abs(math.log(slope) + told) < 1e-3 else None
