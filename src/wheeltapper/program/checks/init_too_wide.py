"""The weights start far too large.

What it sees
------------
An initialisation of weight matrices with a spread that no width asks for: `normal_(std=3)`, `uniform_(-5, 5)`, a gain
of 10, weights multiplied by a large number before training.

Why it matters
--------------
Every layer multiplies the signal; outputs and gradients start orders of magnitude too large, units saturate or die, and
the first steps destroy what is left.

How it decides
--------------
A layer of n inputs keeps the size of its signal at a spread of 1/sqrt(n), so that 1 and more is too large for any layer
of more than one input. The call is on weights of all layers, or of linear and convolution layers; embeddings, which
start at 1, are left alone, and so is what is filled anew later.

When it is wrong
----------------
If the layer has one input, or something divides by its width afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, choices, made_of, number
from wheeltapper.program.reading import Code

ID = "init-too-wide"
CAUSE: str | None = "init-too-large"
DECIDES = True

WIDE = 1.0  # spread of a weight
GAIN = 5.0  # times the spread that keeps the size of the signal
SPREADS = {"normal_", "trunc_normal_"}
GAINS = {"xavier_uniform_", "xavier_normal_", "orthogonal_", "kaiming_normal_", "kaiming_uniform_"}
NARROW = {"BatchNorm1d", "BatchNorm2d", "LayerNorm", "GroupNorm", "RMSNorm"}
MATRICES = {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d", "LSTM", "GRU", "RNN", "LazyLinear"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if not call.args or story.in_training(call):
            continue
        worth = _worth(call)
        if worth is None or not _of_weights(code, call) or _again(code, call):
            continue
        yield code.seen(ID, f"The weights are {worth}: every layer multiplies its signal many times over.", call)
        return


def _worth(call: Val) -> str | None:
    method = call.origin.startswith(".")
    if call.name in SPREADS:
        spread = number(call.arg("std", 2))
        return f"drawn with a spread of {spread:g}" if spread is not None and spread >= WIDE else None
    if call.name == "uniform_":
        high = number(call.arg("b" if not method else "to", 2))
        return f"drawn up to {high:g}" if high is not None and high >= 1.75 * WIDE else None
    if call.name in GAINS:
        gain = number(call.arg("gain", 1)) if call.name[:2] in ("xa", "or") else None
        return f"drawn with a gain of {gain:g}" if gain is not None and gain >= GAIN else None
    if call.name == "mul_":
        factor = number(call.args[1] if len(call.args) > 1 else None)
        return f"multiplied by {factor:g}" if factor is not None and abs(factor) >= GAIN else None
    return None


def _of_weights(code: Code, call: Val) -> bool:
    """All parameters of a trained network, or the weight of a layer that multiplies."""
    story = code.story
    near = list(made_of(call.args[0], deep=False))
    if any(
        v.op == "call" and v.name in ("parameters", "named_parameters") and v.args and story.is_trained(v.args[0])
        for v in near
    ):
        return True
    for one in choices(call.args[0]):
        while one.op == "attr" and one.name == "data" and one.args:
            one = one.args[0]
        if one.op != "attr" or not one.name.startswith("weight") or not one.args:
            continue
        owners = choices(one.args[0])
        if any(o.op == "call" and o.name in MATRICES and story.is_trained(o) for o in owners):
            return True
        if _picked(call) & MATRICES and not _picked(call) & NARROW:
            return True
    return False


def _picked(call: Val) -> set[str]:
    """The kinds of layers that `isinstance` picks around the call."""
    tests = [g.test for g in call.guards if g.taken and g.test.op == "call" and g.test.name == "isinstance"]
    return {v.name for t in tests for a in t.args[1:] for v in (a, *(a.items or []))}


def _again(code: Code, call: Val) -> bool:
    """Something fills the same weights later."""
    fills = code.story.named("load_state_dict", "from_pretrained", *SPREADS, *GAINS)
    return any(c.order > call.order and (c.name == "load_state_dict" or c.args[:1] == call.args[:1]) for c in fills)
