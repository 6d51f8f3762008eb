"""A copy of the network is updated from itself.

What it sees
------------
`target.load_state_dict(target.state_dict())`, `average.lerp_(average, share)`: what is written and what is read are
the same.

Why it matters
--------------
The copy stays what it was when it was made: the targets never move, the average is that of the first weights.

How it decides
--------------
Both sides of the write are one and the same network, or one and the same parameter of a pair that a loop goes over.

When it is wrong
----------------
Never, as far as we know: such a write changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "updated-from-itself"
CAUSE: str | None = None
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named("copy_", "lerp_", "add_"):
        if call.loops and _only_itself(call):
            yield code.seen(ID, "The weights are mixed with those of the same network: nothing is updated.", call)
            return
    for call in story.named("load_state_dict"):
        told = call.args[1] if len(call.args) > 1 else None
        if told is not None and told.op == "call" and told.name == "state_dict" and told.args[0] is call.args[0]:
            yield code.seen(ID, "The network is loaded with its own weights: nothing is updated.", call)
            return
    for call in story.named("lerp_", "copy_", "lerp"):
        if len(call.args) > 1 and _is_weight(call.args[0]) and call.args[0] is call.args[1]:
            yield code.seen(ID, "The weights are mixed with themselves: nothing is updated.", call)
            return
        if call.name == "copy_" and len(call.args) > 1 and _mixes_itself(call.args[0], call.args[1]):
            yield code.seen(ID, "The weights are mixed with themselves: nothing is updated.", call)
            return
    for call in story.named("add_"):
        kept = call.args[0]
        mixed = kept.op == "call" and kept.name == "mul_" and len(call.args) > 1 and kept.args[0] is call.args[1]
        if mixed and _is_weight(kept.args[0]):
            yield code.seen(ID, "The weights are mixed with themselves: nothing is updated.", call)
            return


def _only_itself(call: Val) -> bool:
    """Everything that is written comes from the parameters of the network that is written to."""
    owners = [{id(v.args[0]) for v in made_of(a) if v.op == "call" and v.name == "parameters" and v.args} for a in call.args[:2]]
    pairs = [v for a in call.args[:1] for v in made_of(a) if v.op == "call" and v.name == "zip"]
    if any(v.op == "call" and v.name in ("clone", "deepcopy") for a in call.args[:2] for v in made_of(a)):
        return False  # a copy that was made of the weights
    return len(owners) == 2 and owners[0] == owners[1] and len(owners[0]) == 1 and not _grads(call) and (bool(pairs) or _twice(call))


def _grads(call: Val) -> bool:
    return any(v.op == "attr" and v.name == "grad" for a in call.args for v in made_of(a))


def _twice(call: Val) -> bool:
    """Two walks over the same parameters, side by side."""
    walks = {id(v) for a in call.args[:2] for v in made_of(a) if v.op == "call" and v.name == "parameters"}
    return len(walks) > 1


def _is_weight(value: Val) -> bool:
    return any(v.op == "call" and v.name in ("parameters", "named_parameters", "state_dict", "buffers") for v in made_of(value))


def _mixes_itself(into: Val, mix: Val) -> bool:
    """`p.copy_(m * p + (1 - m) * p)`"""
    if mix.op != "bin" or mix.name != "Add" or not _is_weight(into):
        return False
    return all(a.op == "bin" and a.name == "Mult" and any(_core(x) is _core(into) for x in a.args) for a in mix.args)


def _core(value: Val) -> Val:
    """A parameter without `.data` and `.detach()`."""
    while (value.op == "attr" and value.name == "data") or (value.op == "call" and value.name == "detach"):
        value = value.args[0]
    return value
