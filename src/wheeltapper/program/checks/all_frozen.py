"""Every weight of the network is frozen.

What it sees
------------
`requires_grad = False` on all parameters of a network that an optimizer is then given, after the layers that should
learn were put in.

Why it matters
--------------
There is nothing left to learn, or the adapters stay at their start.

How it decides
--------------
A loop over all parameters of the network sets `requires_grad` to false, without a condition; no layer is put into the
network afterwards and nothing is set to true again.

When it is wrong
----------------
If parts are thawed by code that is not seen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, choices, made_of
from wheeltapper.program.reading import Code

ID = "all-frozen"
CAUSE: str | None = "frozen-parameters"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    nets = [
        *story.trained,
        *(c.kwargs["model"] for c in story.calls if c.name.endswith(("Trainer", "Learner")) and "model" in c.kwargs),
    ]
    yield from _by_keras(code)
    freezes = [c for c in story.calls if _freezes(c)]
    for call in freezes:
        owner = _owner(call.args[0])
        if owner is None or not any(owner is n or owner is _base(n) for n in nets) or call.guards:
            continue
        later = [c for c in story.calls if c.order > call.order or (story.in_training(call) and story.in_training(c))]
        if any(_thaws(c) or _grows(c, owner) for c in later):
            continue
        same = [n for n in nets if n is owner]
        if same:
            if any(v.no_grad for v in _uses(code, owner)):
                continue  # a reference that is not to learn
            yield code.seen(
                ID, "All parameters of the network are frozen, and nothing is thawed or put in afterwards.", call, owner
            )
            return


def _by_keras(code: Code) -> Iterator[Finding]:
    """`model.trainable = False` before compile, on the model that is fitted."""
    story = code.story
    fitted = [c.args[0] for c in story.named("fit") if c.args]
    for call in story.named("setattr"):
        if call.args[1].data != "trainable" or call.args[2].data is not False or call.guards:
            continue
        again = any(
            c.order > call.order and c.args[1].data == "trainable" and c.args[2].data is not False
            for c in story.named("setattr")
        )
        if any(call.args[0] is m for m in fitted) and not again:
            yield code.seen(ID, "The whole model is set not to be trained, and then fitted.", call)
            return


def _uses(code: Code, owner: Val) -> list[Val]:
    return [
        c
        for c in code.story.applications
        if c.args[0] is owner and code.story.in_training(c) and not c.loops[-1].no_grad
    ]


def _freezes(call: Val) -> bool:
    if call.name == "requires_grad_":
        return len(call.args) > 1 and call.args[1].op == "const" and call.args[1].data is False
    return (
        call.name == "setattr"
        and call.args[1].data == "requires_grad"
        and call.args[2].op == "const"
        and call.args[2].data is False
    )


def _thaws(call: Val) -> bool:
    if call.name == "requires_grad_":
        return len(call.args) == 1 or call.args[1].data is not False
    if call.name == "setattr" and call.args[1].data == "requires_grad":
        return not (call.args[2].op == "const" and call.args[2].data is False)
    return call.name in (
        "get_peft_model",
        "add_adapter",
        "enable_adapters",
        "prepare_model_for_kbit_training",
        "unfreeze",
    )


def _grows(call: Val, owner: Val) -> bool:
    """A layer is put into the network."""
    return (
        call.name == "setattr"
        and any(v is owner for a in call.args[:1] for v in _way(a))
        and call.args[2].op in ("obj", "call")
    )


def _way(value: Val) -> Iterator[Val]:
    for one in made_of(value):
        yield one
        yield from choices(one)


def _owner(value: Val) -> Val | None:
    """The network whose parameters these are, all of them."""
    if value.op in ("call", "obj") and value.name not in ("parameters", "named_parameters"):
        return value
    for one in made_of(value):
        if one.op == "call" and one.name in ("parameters", "named_parameters") and one.args:
            return one.args[0]
    return None


def _base(network: Val) -> Val | None:
    return network.args[0] if network.op == "call" and network.name == "get_peft_model" and network.args else None
