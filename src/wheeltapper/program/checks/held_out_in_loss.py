"""Held-out nodes are part of the loss.

What it sees
------------
A loss over all nodes of a graph in a program that has masks for training, validation and test.

Why it matters
--------------
Validation and test nodes are trained on: their score is memory.

How it decides
--------------
The scores are picked with masks named for training, validation or test; the loss is taken over everything. Or the
only evaluation uses the training mask.

When it is wrong
----------------
If the masks are applied before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "held-out-in-loss"
CAUSE: str | None = "train-val-leak"
DECIDES = True

IN_TEXT = re.compile(r"(?:train|val|valid|test)\w*_?(?:mask|idx|index|ids|nodes)\b", re.I)
MASK = re.compile(r"(^|_)(train|val|valid|test)\w*_?(mask|idx|index|ids|nodes)", re.I)


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if not any(IN_TEXT.search(s.text) for s in code.program.scripts):
        return
    masks = {m for c in story.calls for v in (*c.args,) for m in _masks(v)}
    if not masks:
        return
    graphs = {
        id(v.args[0]) for c in story.calls for a in c.args for v in made_of(a) if v.op == "attr" and MASK.search(v.name)
    }
    seen = {
        m for c in story.calls if c.no_grad for v in c.args if any(x.op == "cmp" for x in made_of(v)) for m in _masks(v)
    }
    if seen and all("train" in m and "val" not in m and "edge" not in m for m in seen):
        where = next(c for c in story.calls if c.no_grad and any(_masks(a) for a in c.args))
        yield code.seen(ID, "The only evaluation is made on the nodes of the training mask.", where, grade="suspected")
        return
    for loss in story.loss_calls:
        if len(loss.args) < 2 or "reduction" in loss.kwargs:
            continue  # kept place by place, to be masked afterwards
        mine = _masks(loss.args[0]) | _masks(loss.args[1])
        whole = [
            v
            for v in loss.args[1:2]
            if v.op == "attr" and v.name in ("y", "labels", "label") and id(v.args[0]) in graphs
        ]
        if not mine and whole and masks:
            yield code.seen(
                ID, "The loss is taken over all nodes, those held out for validation and test included.", loss
            )
            return
        wrong = [m for m in mine if "train" not in m]
        if wrong and not any("train" in m for m in mine):
            yield code.seen(ID, f"The loss is taken over {wrong[0]}.", loss)
            return


def _masks(value: Val) -> set[str]:
    return {v.name.lower() for v in made_of(value) if v.op in ("attr", "param", "free") and MASK.search(v.name)}
