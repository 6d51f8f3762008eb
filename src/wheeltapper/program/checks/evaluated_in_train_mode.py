"""The model is evaluated in training mode.

What it sees
------------
A network with dropout or batch norm that is applied with gradients off, for a score, while it is in training mode.

Why it matters
--------------
Dropout stays on and batch norm uses (and updates) batch statistics: the numbers are worse and noisier than the model.

How it decides
--------------
The order of the calls is followed: the last switch of the network's mode before the evaluation is `train()`, or there
is none at all, and the network holds layers that have a mode.

When it is wrong
----------------
If the model is switched by code that is not seen; Monte-Carlo dropout.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding, Grade
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, choices, number
from wheeltapper.program.reading import Code

ID = "evaluated-in-train-mode"
CAUSE: str | None = "eval-in-train-mode"
DECIDES = True

MODED = {
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Dropout3d",
    "AlphaDropout",
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "SyncBatchNorm",
}
UNKNOWN = -1.0
INNER = {
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
    "Transformer",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "vgg16",
    "densenet121",
    "efficientnet_b0",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.evaluations:
        network = call.args[0]
        if not has_modes(story, network) or _collects(code, call):
            continue
        switched = [
            c for c in story.named("eval", "train") if any(_concerns(story, one, network) for one in choices(c.args[0]))
        ]
        before = [c for c in switched if c.order < call.order]
        last = max(before, key=lambda c: c.order, default=None)
        if last is not None and (last.name == "eval" or len(last.args) > 1):
            continue
        if last is None and any(c.name == "eval" for c in switched):
            continue
        grade: Grade = "is" if any(_rate(p) != UNKNOWN for p in _moded(story, network)) else "suspected"
        text = "The network is evaluated in training mode: its dropout or batch norm is on."
        yield code.seen(ID, text, call, grade=grade)
        return


def has_modes(story: Story, network: Val) -> bool:
    parts = story.parts_of(network)
    loaded = any(p.name == "from_pretrained" for p in parts)
    if loaded and any(c.args[0] is network for c in story.named("train")):
        return True  # such models come in eval mode, and this one was switched
    if _moded(story, network):
        return True
    return any(
        c.name in ("dropout", "dropout2d", "feature_dropout") and "training" in c.kwargs
        for c in story.calls
        if network.op == "obj"
    )


def _moded(story: Story, network: Val) -> list[Val]:
    """The parts that behave otherwise in training: not dropout with a share of zero."""
    parts = [p for p in story.parts_of(network) if p.op == "call"]
    return [p for p in parts if (p.name in MODED or p.name in INNER or _drops(p)) and _rate(p) != 0]


def _rate(layer: Val) -> float:
    """The share that a layer drops; UNKNOWN where an option or a file says it."""
    place = {"TransformerEncoderLayer": 4, "TransformerDecoderLayer": 4, "Transformer": 5}.get(layer.name, 0)
    if layer.name.startswith(("BatchNorm", "SyncBatchNorm")) or (layer.name in INNER and not place):
        return 1.0
    told = layer.arg("p", 0) if "Dropout" in layer.name else layer.arg("dropout", place - 1 if place else None)
    if told is None:
        return 1.0
    known = number(told)
    return UNKNOWN if known is None else known


def _drops(layer: Val) -> bool:
    """A recurrent layer with dropout between its levels."""
    return layer.name in ("LSTM", "GRU", "RNN") and bool(number(layer.kwargs.get("dropout")))


def _concerns(story: Story, one: Val, network: Val) -> bool:
    return one is network or story.holds(one, network) or one.op in ("param", "free", "phi")


def _collects(code: Code, call: Val) -> bool:
    """Gradients are off to collect data (a rollout), not to measure."""
    return bool(code.story.named("reset")) or call.order < 0
