"""An optimizer is given a list that stays empty.

What it sees
------------
A group of parameters that is an empty list: nothing is ever put into it.

Why it matters
--------------
What was meant to be in it (biases, norms, a head) is in no optimizer and keeps its first values.

How it decides
--------------
The list is written as `[]`, nothing is appended or added to it before the optimizer is made, and another list of the
same loop is filled.

When it is wrong
----------------
If the group is filled later through the optimizer.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "empty-group"
CAUSE: str | None = "params-not-in-optimizer"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.named("add_param_group"):
        return
    for optimizer in story.optimizers:
        given = optimizer.arg("params", 0)
        groups = [v.fields["params"] for v in made_of(given) if v.op == "dict" and "params" in v.fields]
        empty = [g for g in groups if g.op == "list" and g.items == []]
        full = [g for g in groups if g.items]
        if empty and full and story.complete and not _is_filled(empty[0]):
            fills = [c for c in story.named("append") if c.args and c.args[0] is full[0]]
            yield code.seen(ID, "A group of the optimizer is a list that stays empty: its parameters are never trained.", *(fills[-1:] or [optimizer]), empty[0], optimizer)
            return


def _is_filled(group: Val) -> bool:
    return bool(group.args or group.kwargs)
