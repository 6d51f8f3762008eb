"""Biases start so low that no unit fires.

What it sees
------------
Biases of all layers, or of a layer before a ReLU, that are set to a large negative number.

Why it matters
--------------
A ReLU of a large negative sum is zero and has no gradient: such a unit never wakes up.

How it decides
--------------
`constant_` or `fill_` with -5 and less on the bias of every layer of a kind, in a network that has ReLUs. A last layer
alone, where a low bias says that positives are rare, is left alone.

When it is wrong
----------------
If the inputs are as large as the bias.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "bias-kills-units"
CAUSE: str | None = "dead-network"
DECIDES = True

LOW = -5.0


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not story.named("relu"):
        return
    for call in story.named("constant_", "fill_"):
        worth = number(call.args[1] if len(call.args) > 1 else None)
        if worth is None or worth > LOW or story.in_training(call) or not _of_every_layer(call):
            continue
        yield code.seen(
            ID, f"The bias of every layer starts at {worth:g}: no ReLU fires, and none gets a gradient.", call
        )
        return


def _of_every_layer(call: Val) -> bool:
    way = list(made_of(call.args[0], deep=False))
    biased = any(v.op == "attr" and v.name == "bias" for v in way)
    every = any(v.op == "call" and v.name in ("modules", "named_modules", "children", "apply") for v in way)
    return biased and (
        every or any(name in ("apply", "_init_weights", "init_weights") for name in call.inside) or bool(call.loops)
    )
