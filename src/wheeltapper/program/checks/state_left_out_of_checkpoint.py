"""Something that changes in training is left out of the checkpoint.

What it sees
------------
A scheduler, an average, an optimizer or an object with a state of its own that is stepped or updated, while the
checkpoint that a resume loads holds the others only.

Why it matters
--------------
After a resume it begins anew: the rate jumps to its start, the moments or the average are lost.

How it decides
--------------
With accelerate: what was prepared or registered against what is stepped. With ignite's Checkpoint: the objects that
are saved and loaded against the optimizers and schedulers that are stepped. Said only where the program loads what it
saved.

When it is wrong
----------------
If the state is restored by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.objects import SCHEDULERS
from wheeltapper.program.play.story import Story, is_optimizer
from wheeltapper.program.play.value import Val, choices
from wheeltapper.program.reading import Code

ID = "state-left-out-of-checkpoint"
CAUSE: str | None = "resume-lost-optimizer"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.named("load_state") and story.named("save_state"):
        kept = [a for c in story.named("prepare", "register_for_checkpointing") for a in c.args[1:]]
        places = story.named("register_for_checkpointing", "prepare")
    elif story.named("load_objects"):
        boxes = [c.kwargs.get("to_load") or (c.args[0] if c.args else None) for c in story.named("load_objects")]
        kept = [v for b in boxes if b is not None for k, v in b.fields.items() if not k.startswith("@")]
        places = [b for b in boxes if b is not None]
    else:
        return
    if not kept or not places:
        return
    for what, name in _moving(code, story):
        if not any(what is one for k in kept for one in choices(k)):
            yield code.seen(ID, f"{name} changes in training and is left out of the checkpoint: after a resume it begins anew.", places[0], what)
            return


def _moving(code: Code, story: Story) -> Iterator[tuple[Val, str]]:
    """Schedulers and optimizers that are stepped, and objects of the program with a state of their own that are updated."""
    for call in story.calls:
        thing = call.args[0] if call.args and call.loops else None
        if thing is None:
            continue
        if call.name == "step" and thing.op == "call" and (thing.name in SCHEDULERS or is_optimizer(thing)):
            yield thing, thing.name
    for cls in code.program.classes.values():
        if {"state_dict", "load_state_dict", "update"} <= cls.methods.keys():
            for call in story.named(cls.name):
                if call.args and call.args[0].op == "obj":
                    yield call.args[0], cls.name
