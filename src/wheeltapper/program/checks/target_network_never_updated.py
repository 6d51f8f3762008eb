"""The target network is never updated.

What it sees
------------
A second network in the bootstrapped target that starts as a copy of the trained one, and that nothing writes to
afterwards.

Why it matters
--------------
The targets stay those of the first weights: the values never get beyond one step of improvement.

How it decides
--------------
A network in `r + gamma * V(s')` that no optimizer moves; no `load_state_dict`, no copy or average into its parameters
happens inside a loop.

When it is wrong
----------------
If it is a fixed, trained network on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "target-network-never-updated"
CAUSE: str | None = None
DECIDES = True

WRITES = {
    "load_state_dict",
    "copy_",
    "lerp_",
    "mul_",
    "add_",
    "update",
    "soft_update",
    "update_parameters",
    "sync",
    "polyak_update",
    "setattr",
    "_foreach_lerp_",
}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if any("jax" in origin for names in code.program.imported.values() for origin in names.values()):
        return  # its networks hold no weights
    for _, loss in story.backwards:
        for _, _, factor in bootstrap(loss):
            for net in (v for v in made_of(factor) if v.op == "net" and not _inside(v)):
                target = net.args[0]
                if story.is_trained(target) or not story.is_network(target) or target.name == "from_pretrained":
                    continue
                if not any(writes_to(call, target, story) for call in story.calls) and story.complete:
                    yield code.seen(
                        ID,
                        "Nothing ever updates the network that makes the targets: they stay those of its first weights.",
                        net,
                        target,
                    )
                    return


def _inside(net: Val) -> bool:
    return "forward" in net.inside


def writes_to(call: Val, target: Val, story: Story) -> bool:
    """A call in a loop that changes what belongs to the network."""
    if (not call.loops and story.training_loops) or (call.name not in WRITES and not call.name.endswith("_")):
        return False
    return any(
        v is target or (v.op in ("obj", "call") and story.holds(v, target))
        for a in (*call.args[:1], *call.args[1:2])
        for v in _reached(a)
    )


def _reached(value: Val) -> Iterator[Val]:
    for one in made_of(value):
        yield one
        if one.op in ("attr", "call", "item"):
            yield from one.args[:1]
