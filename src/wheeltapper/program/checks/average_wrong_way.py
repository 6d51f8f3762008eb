"""The average of the weights is taken the wrong way round.

What it sees
------------
A moving average of weights, written out, in which the new weights get nearly all the weight, or the shares do not add
up to one, or the trained network is overwritten by the average.

Why it matters
--------------
The average is then no average: it follows every step, drifts to zero or without bounds, or holds the training back.

How it decides
--------------
`e.mul_(a).add_(p, alpha=b)`, `e.copy_(a * e + b * p)`, `e.lerp_(p, b)` and `a * e + b * p` over the parameters of two
networks, one trained and one not, with numbers that are known.

When it is wrong
----------------
If so fast an average is meant.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_frozen
from wheeltapper.program.play.formula import ends, worth_at
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.program import dotted_name
from wheeltapper.program.reading import Code

ID = "average-wrong-way"
CAUSE: str | None = "ema-horizon-too-long"
DECIDES = True


UNKNOWN = math.nan  # a share that changes during the run from one side to the other
TRIED = (0.01, 0.3, 1.0, 12.0, 1e4)  # numbers for what a share is made of


class Mix(NamedTuple):
    into: Val
    keeps: float
    takes: float
    call: Val


KEPT = re.compile(r"decay|momentum|^beta", re.I)


def check(code: Code) -> Iterator[Finding]:
    for call in code.program.calls.get("lerp_", []):
        weight = call.args[1] if len(call.args) > 1 else None
        if isinstance(weight, ast.Name | ast.Attribute) and KEPT.search(dotted_name(weight).split(".")[-1]):
            text = f"The average moves by `{ast.unparse(weight)}` towards the new weights; a decay says how much of the old is kept."
            yield code.finding(ID, text, call, grade="suspected", severity="watch")
            return
    story = code.story
    for mix in _mixes(story):
        owner = _owner(mix.into)
        if owner is None or not mix.call.loops:
            continue
        source = _source(mix)
        trained = story.is_trained(owner) and not is_frozen(story, owner)
        if math.isnan(mix.keeps) and not (trained and source is not None and not story.is_trained(source)):
            continue
        kept_apart = any(v.op in ("comp", "dict") for v in made_of(mix.into))  # {name: value.clone() ...}
        if trained and not kept_apart:
            yield code.seen(
                ID,
                "The trained weights are overwritten with a mix of themselves and the average.",
                mix.call,
                grade="suspected",
            )
        elif abs(mix.keeps + mix.takes - 1) > 0.02 * max(mix.takes, 0.01) + 1e-6:
            yield code.seen(
                ID,
                f"The shares of the average do not add up to one: {mix.keeps:g} of itself and {mix.takes:g} of the new weights.",
                mix.call,
            )
        elif mix.keeps < 0.3 and mix.takes < 1:
            yield code.seen(
                ID,
                f"The average keeps {mix.keeps:g} of itself and takes {mix.takes:g} of the new weights: the shares are the wrong way round.",
                mix.call,
            )
        else:
            continue
        return


def _mixes(story: Story) -> Iterator[Mix]:
    for call in story.named("add_"):
        before = call.args[0]
        if before.op != "call" or before.name != "mul_" or len(before.args) < 2 or len(call.args) < 2:
            continue
        takes = _worth(call.kwargs["alpha"]) if "alpha" in call.kwargs else _share(call.args[1])[0]
        if takes is not None:
            yield Mix(before.args[0], _worth(before.args[1]), takes, call)
    for call in story.named("lerp_"):
        given = call.args[2] if len(call.args) > 2 else call.kwargs.get("weight")
        if given is not None:
            yield Mix(call.args[0], 1 - _worth(given), _worth(given), call)
    for call in story.named("copy_"):
        if len(call.args) > 1 and call.args[1].op == "bin" and call.args[1].name == "Add":
            yield from _sum(call.args[0], call.args[1], call)
    for call in story.named("setattr"):
        if call.args[1].data == "data" and call.args[2].op == "bin" and call.args[2].name == "Add":
            yield from _sum(call.args[0], call.args[2], call)


def _worth(value: Val) -> float:
    """A share as a number. One that changes during the run counts as its middle, if it stays on one side; else it is not known."""
    known = number(value)
    if known is not None:
        return known
    loose = ends(value)
    found = [worth_at(value, {id(e): x for e in loose}) for x in TRIED]
    sure = [x for x in found if x is not None]
    if len(sure) == len(TRIED) and (all(0 <= x < 0.3 for x in sure) or all(0.7 < x <= 1 for x in sure)):
        return sum(sure) / len(sure)
    return UNKNOWN


def _source(mix: Mix) -> Val | None:
    """The network that is mixed in."""
    mine = _owner(mix.into)
    for value in mix.call.args[1:]:
        for one in made_of(value):
            if one.op == "call" and one.name in ("parameters", "named_parameters", "state_dict", "buffers") and one.args and one.args[0] is not mine:
                return one.args[0]
    return None


def _sum(into: Val, total: Val, call: Val) -> Iterator[Mix]:
    shares = [_share(a) for a in total.args]
    own = [s for s, v in shares if s is not None and _owner(v) is _owner(into) and _owner(v) is not None]
    other = [s for s, v in shares if s is not None and _owner(v) is not _owner(into) and _owner(v) is not None]
    if len(own) == 1 and len(other) == 1 and own[0] is not None and other[0] is not None:
        yield Mix(into, own[0], other[0], call)


def _share(value: Val) -> tuple[float | None, Val]:
    if value.op == "bin" and value.name == "Mult":
        for one, other in (value.args, tuple(reversed(value.args))):
            if number(one) is not None or not _is_weight(one):
                return _worth(one), other
    return None, value


def _is_weight(value: Val) -> bool:
    return _owner(value) is not None


def _owner(value: Val) -> Val | None:
    """The network whose parameter this is."""
    for one in made_of(value):
        if one.op == "call" and one.name in ("parameters", "named_parameters", "state_dict", "buffers") and one.args:
            return one.args[0]
    return None
