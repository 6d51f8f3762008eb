"""The teacher runs in training mode.

What it sees
------------
A network with dropout or batch norm that gives targets, with gradients off, and is never switched to `eval()`.

Why it matters
--------------
Its targets are noisy and depend on the batch; its batch norm statistics change while it should stand still.

How it decides
--------------
The target of the loss is made by a network that no optimizer moves, whose mode is never switched off, and which holds
layers that have a mode.

When it is wrong
----------------
Where the noise is wanted, as in noisy-student training with dropout on.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.evaluated_in_train_mode import has_modes
from wheeltapper.program.play.value import Val, choices, made_of
from wheeltapper.program.reading import Code

ID = "teacher-in-train-mode"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        learning = {id(v.args[0]) for v in made_of(loss) if v.op == "net" and not v.no_grad}
        for net in made_of(loss):
            if net.op == "net" and id(net.args[0]) in learning:
                continue  # the student itself, with its adapters off
            if net.op != "net" or not net.no_grad or story.is_trained(net.args[0]) or "forward" in net.inside:
                continue
            teacher = net.args[0]
            if not has_modes(story, teacher) or _is_target(code, teacher):
                continue
            switched = [
                c
                for c in story.named("eval")
                if any(o is teacher or story.holds(o, teacher) for o in choices(c.args[0]))
            ]
            back = [
                c
                for c in story.named("train")
                if any(o is teacher for o in choices(c.args[0]))
                and c.order > max((s.order for s in switched), default=-1)
            ]
            if not switched or back:
                yield code.seen(
                    ID, "The network that makes the targets is in training mode.", back[0] if back else net, teacher
                )
                return


def _is_target(code: Code, teacher: Val) -> bool:
    """A moving copy of the student follows its mode."""
    return any(
        c.loops and c.args[0] is teacher for c in code.story.named("load_state_dict", "update_parameters", "update")
    ) or ("@copy" in teacher.fields)
