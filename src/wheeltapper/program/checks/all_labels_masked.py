"""Every label is masked.

What it sees
------------
Labels that are -100 (the value the loss ignores) everywhere.

Why it matters
--------------
The loss has nothing to count: it is not a number, or zero, and nothing is learned.

How it decides
--------------
The labels of a record are a list of -100 alone, or a tensor filled with it that nothing is written into.

When it is wrong
----------------
If another part of the program writes the labels in afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "all-labels-masked"
CAUSE: str | None = "all-labels-masked"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    written = {id(v) for c in code.story.named("setitem") for a in c.args[:1] for v in made_of(a, deep=False)}
    for record in code.story.dicts:
        labels = record.fields.get("labels") or record.fields.get("label")
        if labels is not None and _masked(labels) and id(labels) not in written:
            yield code.seen(ID, "Every label of a record is the value that the loss ignores.", labels, record)
            return


def _masked(value: Val, depth: int = 0) -> bool:
    if depth > 6:
        return False
    if value.op == "bin" and value.name == "Mult":
        return any(a.items and all(number(i) == -100 for i in a.items) for a in value.args)
    if value.op == "item" and value.args[1].op == "slice":
        return _masked(value.args[0], depth + 1)
    if value.op == "call" and value.name in ("full_like", "full"):
        return any(number(a) == -100 for a in (*value.args[1:], *value.kwargs.values()))
    return (
        value.op == "call"
        and value.name in ("tensor", "LongTensor")
        and bool(value.args)
        and _masked(value.args[0], depth + 1)
    )
