"""All weights start at zero.

What it sees
------------
An initialisation that sets the weights of every layer to zero (or to one and the same number).

Why it matters
--------------
All units of a layer get the same gradient and stay alike: the network behaves like one unit.

How it decides
--------------
`zeros_`, `constant_`, `fill_` or `zero_` on every parameter of a network, or on the weights of every linear layer,
without a condition that picks one.

When it is wrong
----------------
If the network is a single layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number, text_of
from wheeltapper.program.reading import Code

ID = "zero-init"
CAUSE: str | None = "dead-network"
DECIDES = True

SAME = {"zeros_", "zero_", "ones_", "constant_", "fill_"}
LAYERS = {"Linear", "Conv2d", "Conv1d", "Conv3d"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if call.name not in SAME or not call.args or story.in_training(call):
            continue
        thing = call.args[0]
        every = [
            v
            for v in made_of(thing)
            if v.op == "call" and v.name == "parameters" and v.args and story.is_trained(v.args[0])
        ]
        if every and not call.guards and call.loops and not _later(code, call):
            yield code.seen(ID, "Every parameter of the network is set to the same number.", call)
            return
        if thing.op == "attr" and thing.name in ("weight", "data") and _of_all_layers(call) and not _later(code, call):
            yield code.seen(ID, "The weights of every layer of this kind are set to the same number.", call)
            return


def _of_all_layers(call: Val) -> bool:
    """Under `isinstance(m, nn.Linear)` in what is applied to all modules, and on the weight."""
    names = {v.name for v in made_of(call.args[0]) if v.op == "attr"}
    if "weight" not in names or not call.guards:
        return False
    test = call.guards[-1].test
    picked = (
        {v.name for a in test.args[1:] for v in (a, *(a.items or []))}
        if test.op == "call" and test.name == "isinstance"
        else set()
    )
    return (
        bool(picked & LAYERS)
        and len(call.guards) == 1
        and ("zero" in call.name or number(call.args[1] if len(call.args) > 1 else None) is not None)
    )


def _later(code: Code, call: Val) -> bool:
    """Something fills them again."""
    names = (
        "xavier_uniform_",
        "kaiming_normal_",
        "kaiming_uniform_",
        "normal_",
        "xavier_normal_",
        "uniform_",
        "load_state_dict",
        "orthogonal_",
        "trunc_normal_",
    )
    return any(c.order > call.order for c in code.story.named(*names)) or text_of(None) is not None
