"""Weights that are no parameters.

What it sees
------------
A module whose weights are a plain tensor, initialised as weights are (`nn.init...`) or made with
`requires_grad=True`.

Why it matters
--------------
A tensor that is not an `nn.Parameter` is not in `parameters()`: no optimizer moves it, and it stays as it was
drawn.

How it decides
--------------
A field of a trained network is a tensor that an initialiser fills or that asks for gradients, not wrapped and not
given to an optimizer.

When it is wrong
----------------
If the tensor is registered elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "weights-not-registered"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True


DRAWN = {"empty", "randn", "rand", "zeros", "ones"}
FILLS = {
    "kaiming_uniform_",
    "kaiming_normal_",
    "xavier_uniform_",
    "xavier_normal_",
    "normal_",
    "uniform_",
    "trunc_normal_",
    "orthogonal_",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    given = {id(v) for o in story.optimizers for a in o.args[:1] for v in made_of(a)}
    kept = {
        id(v)
        for c in story.named("register_parameter", "register_buffer", "Parameter")
        for a in c.args
        for v in made_of(a)
    }
    filled = {id(v): c for c in story.calls if c.name in FILLS for a in c.args[:1] for v in made_of(a)}
    made = [
        c.args[0]
        for c in story.calls
        if c.args and c.args[0].op == "obj" and c.name == c.args[0].name and c.origin.startswith("?")
    ]
    for network in [n for n in made if story.is_network(n)]:
        for name, value in network.fields.items():
            for tensor in _tensors(value):
                if id(tensor) in given | kept or id(value) in kept or not (id(tensor) in filled or _asks(tensor)):
                    continue
                text = f"self.{name} is a plain tensor, no nn.Parameter: no optimizer moves it."
                yield code.seen(ID, text, tensor, network)
                return


def _tensors(value: Val) -> list[Val]:
    own = [v for v in made_of(value) if v.op == "call" and v.name in DRAWN and v.origin.startswith("torch")]
    return own if value.op == "call" and value.name in DRAWN | FILLS else []


def _asks(value: Val) -> bool:
    wanted = value.kwargs.get("requires_grad")
    return wanted is not None and wanted.data is True
