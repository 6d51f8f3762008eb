"""The teacher is trained along with the student.

What it sees
------------
An optimizer that is given the parameters of the network that makes the targets.

Why it matters
--------------
Teacher and student agree on something easy; the knowledge of the teacher is lost. With gradients off, weight decay
still shrinks it.

How it decides
--------------
A network whose output is used as a target (the second argument of the loss) while another is trained towards it is
among the networks that an optimizer moves.

When it is wrong
----------------
Mutual learning, where both are meant to move.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.story import LOSSES
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

ID = "teacher-trained-along"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in LOSSES or len(loss.args) < 2:
            continue
        teachers = [v.args[0] for v in made_of(loss.args[1], deep=False) if v.op == "net"]
        students = [v.args[0] for v in made_of(loss.args[0], deep=False) if v.op == "net"]
        for teacher in teachers:
            if any(s is teacher for s in students) or not students or teacher.op not in ("call", "obj"):
                continue
            mover = next((o for o in story.optimizers if any(n is teacher for n in story.moved_by(o))), None)
            loaded = (
                any(c.args[0] is teacher for c in story.named("load_state_dict")) or teacher.name == "from_pretrained"
            )
            if mover is not None and loaded and any(n is s for s in students for n in story.moved_by(mover)):
                yield code.seen(ID, "The optimizer also moves the network that makes the targets.", mover, teacher)
                return
