"""A scheduler is made that nobody steps.

What it sees
------------
Schedulers of a LightningModule under manual optimisation that the module never steps.

Why it matters
--------------
Lightning leaves them alone then: the rate stays where it is for the whole run.

How it decides
--------------
configure_optimizers returns a scheduler, automatic optimisation is off, and no method of the class calls
lr_schedulers().

When it is wrong
----------------
If a callback of the trainer steps the schedulers itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code

ID = "schedule-by-nobody"
CAUSE: str | None = "schedule-never-decays"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not story.complete or "lr_schedulers" in code.program.calls:
        return
    for cls in code.program.classes.values():
        if "configure_optimizers" not in cls.methods or "automatic_optimization" not in cls.script.text:
            continue
        made = [p for p in code.made("scheduler") if code.program.func_of[p.call] is cls.methods["configure_optimizers"]]
        stepped = [c for c in story.named("step") if c.args and any(p.call is c.args[0].node for p in made)]
        if made and not stepped:
            step = cls.methods.get("on_train_epoch_end") or cls.methods["training_step"]
            yield code.finding(ID, "Under manual optimisation nobody steps the schedulers: the rate never changes.", step.node, made[0].call, *step.body[:1])
            return
