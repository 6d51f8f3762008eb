"""The output cannot reach the targets.

What it sees
------------
A network that ends in an activation of limited range (ReLU, sigmoid, softplus, tanh), trained on numbers outside of it.

Why it matters
--------------
Targets below zero cannot be met by an output that is never negative: the error stays, however long it trains, and a
ReLU that is off gets no gradient at all.

How it decides
--------------
The loss is one for numbers, the network's last operation is the activation, and the targets are known to go beyond its
range: they were standardised, or made with sine, noise or a difference. Where the
targets are not followed so far, nothing is said.

When it is wrong
----------------
If the targets were made positive where it cannot be seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.slopes import filled_with
from wheeltapper.program.play.story import NUMBER_LOSSES, Story
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "output-cannot-reach"
CAUSE: str | None = "output-activation-wrong"
DECIDES = True

NEVER_NEGATIVE = {"relu", "sigmoid", "softplus", "exp", "square", "softmax", "abs", "hardsigmoid", "relu6"}
SIGNED = {
    "sin",
    "cos",
    "tanh",
    "randn",
    "standard_normal",
    "normal",
    "StandardScaler",
    "scale",
    "zscore",
    "standardize",
    "randn_like",
}
MADE_POSITIVE = {
    "abs",
    "exp",
    "square",
    "clip",
    "clamp",
    "clamp_min",
    "relu",
    "sigmoid",
    "log1p",
    "MinMaxScaler",
    "minmax_scale",
    "maximum",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in NUMBER_LOSSES or len(loss.args) < 2:
            continue
        last = [v for v in produced(loss.args[0]) if v.op == "call" and v.name in NEVER_NEGATIVE]
        if not last or not _learned(story, last[0]) or any(v.op == "net" for v in lineage(loss.args[1])):
            continue
        below = goes_below_zero(loss.args[1])
        if below is not None:
            text = f"The output passes {last[0].name} and is never negative; the targets are on both sides of zero."
            yield code.seen(ID, text, last[0], loss, below)
            return


def _learned(story: Story, value: Val) -> bool:
    return any(v.op == "net" and story.is_trained(v.args[0]) for v in made_of(value))


def goes_below_zero(target: Val, depth: int = 0) -> Val | None:
    """What makes a target lie on both sides of zero; None where nothing is known to."""
    if depth > 40:
        return None
    go = depth + 1
    match target.op:
        case "bin":
            return _of_two(target, go)
        case "phi":
            return next((f for a in target.args if (f := goes_below_zero(a, go)) is not None), None)
        case "call" if target.name in SIGNED or (target.name in ("transform", "fit_transform") and _standard(target)):
            return target
        case "call" if target.name in MADE_POSITIVE:
            return None
    before = lineage(target)[1:2]
    return goes_below_zero(before[0], go) if before else None


def _of_two(value: Val, depth: int) -> Val | None:
    a, b = value.args
    if value.name == "Sub" and any(v.op == "call" and v.name in ("mean", "median", "nanmean") for v in made_of(b)):
        return value
    if value.name in ("Mult", "Div"):
        return goes_below_zero(a, depth) or (goes_below_zero(b, depth) if value.name == "Mult" else None)
    if value.name == "Add" and number(a) is None and number(b) is None:
        one, other = goes_below_zero(a, depth), goes_below_zero(b, depth)
        both = one is not None and other is not None
        return one or other if both or filled_with(a) == 0 or filled_with(b) == 0 else None
    return None


def _standard(call: Val) -> bool:
    return any(v.op == "call" and v.name == "StandardScaler" for v in made_of(call.args[0]))
