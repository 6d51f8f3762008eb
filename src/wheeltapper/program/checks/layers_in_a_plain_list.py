"""Layers kept in a plain Python list.

What it sees
------------
A module that keeps layers in a list, a tuple or a dictionary of Python and applies them.

Why it matters
--------------
torch finds only what is registered: the parameters are not in `parameters()`, no optimizer moves them, no
checkpoint holds them.

How it decides
--------------
A field of a network is a list of networks, none of which the network holds under another name, and no optimizer was
given them.

When it is wrong
----------------
If something unseen registers them.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "layers-in-a-plain-list"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True


REGISTERS = {"add_module", "register_module", "ModuleList", "Sequential", "ModuleDict"}
HOLDS = ("list", "tuple", "comp", "dict")


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not any(origin.split(".")[0] == "torch" for table in code.program.imported.values() for origin in table.values()):
        return  # flax and Keras find what lies in a list
    moved = [p for n in story.trained for p in story.parts_of(n)]
    for network in {id(n): n for n in moved if n.op == "obj"}.values():
        for name, value in network.fields.items():
            layers = _layers(story, value)
            if name.startswith("@") or not layers or not _learn(layers) or _registered(story, network, name, layers):
                continue
            text = f"self.{name} is a plain {_kind(value)}: torch does not see the layers in it, and no optimizer moves them."
            yield code.seen(ID, text, value, network)
            return


def _layers(story: Story, value: Val) -> list[Val]:
    if value.op not in HOLDS:
        return []
    inner = [*(value.items or []), *(value.fields.values() if value.op == "dict" else value.args[:1])]
    return inner if inner and all(v.op in ("call", "obj") and story.is_network(v) for v in inner) else []


def _learn(layers: list[Val]) -> bool:
    """Whether there is something to learn in them: not pooling, not dropout."""
    still = ("Dropout", "MaxPool", "AvgPool", "Identity", "Flatten", "Upsample", "ReLU", "GELU", "Pad")
    return any(not v.name.startswith(still) for v in layers)


def _registered(story: Story, network: Val, name: str, layers: list[Val]) -> bool:
    mine = {id(v) for v in layers}
    for other, value in network.fields.items():
        if other == name or other.startswith("@"):
            continue
        if any(id(v) in mine for v in made_of(value)) or (
            value.op == "call" and any(id(p) in mine for p in story.parts_of(value))
        ):
            return True
    for call in story.calls:
        if call.name not in REGISTERS or call.op != "call":
            continue
        given = [*call.args, *call.kwargs.values()]
        if any(id(v) in mine for a in given for v in made_of(a)):
            return True
    given_out = [n for o in story.optimizers for n in story.moved_by(o)]
    return any(id(n) in mine for n in given_out)


def _kind(value: Val) -> str:
    return {"dict": "dictionary", "tuple": "tuple"}.get(value.op, "list")
