"""The network sees the same number everywhere.

What it sees
------------
A network whose output goes into the loss and whose every input is a tensor of one number: zeros, ones, a product with 0.

Why it matters
--------------
It cannot tell one sample from another: it learns one answer for all of them, at best the mean.

How it decides
--------------
The output that the loss is made of is followed back to the first layers of the network. The content of each of their
inputs comes from tensors filled with one number. Indices and masks only pick, and do not count.

When it is wrong
----------------
If the network is meant to learn one constant, as in an image that is itself the parameter.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import PARAMETER_LAYERS
from wheeltapper.program.play.inputs import constant_origin, origins
from wheeltapper.program.play.slopes import filled_with
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "input-is-constant"
CAUSE: str | None = "dead-input-channels"
DECIDES = True

RECURRENT = {"LSTM", "GRU", "RNN"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.losses:
        if all(filled_with(end) is not None for end in origins(loss)):
            continue  # nothing in it is data: a trial run on made-up tensors
        for net in (v for v in made_of(loss, deep=False, stop=_is_net) if _is_net(v) and len(v.args) > 1):
            if not story.is_trained(net.args[0]) or any(_is_net(v) for a in net.args[1:] for v in made_of(a)):
                continue
            first = [v for v in made_of(net) if _is_first(v)]
            found = [constant_origin(v.args[1]) for v in first]
            if found and all(f is not None for f in found) and found[0] is not None:
                yield code.seen(ID, "All that this network is given is one and the same number.", net, found[0])
                return


def _is_net(value: Val) -> bool:
    return value.op == "net"


def _is_first(value: Val) -> bool:
    """A layer with weights, of a library, whose input no other layer made."""
    if not _is_net(value) or value.args[0].op != "call" or len(value.args) < 2:
        return False
    layered = value.args[0].name in PARAMETER_LAYERS | RECURRENT
    return layered and not any(_is_net(v) for v in made_of(value.args[1]))
