"""The labels are shifted twice.

What it sees
------------
Inputs and labels already shifted against each other, given to a causal model of transformers, which shifts the
labels itself.

Why it matters
--------------
The model learns to predict two tokens ahead.

How it decides
--------------
A batch has `input_ids` without the last token and `labels` without the first, and the model is one that takes
labels and shifts them.

When it is wrong
----------------
If the loss is computed outside of the model from its logits.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import window
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "shifted-twice"
CAUSE: str | None = "target-misaligned"
DECIDES = True


SHIFTS = re.compile(r"LMHeadModel|ForCausalLM")


def check(code: Code) -> Iterator[Finding]:
    made = [c for c in code.story.calls if SHIFTS.search(c.origin) or SHIFTS.search(c.name)]
    if not made or code.calls_any("cross_entropy", "CrossEntropyLoss"):
        return
    for record in [*code.story.dicts, *(c for c in code.story.applications if "labels" in c.kwargs)]:
        fields = record.fields if record.op == "dict" else record.kwargs
        ids, labels = fields.get("input_ids"), fields.get("labels")
        if ids is not None and labels is not None and _each_shifted(ids, labels):
            text = "Every label is the token after its input, and the model shifts the labels again: it learns to predict two tokens ahead."
            yield code.seen(ID, text, labels, record, made[0])
            return
        a, b = (window(v) if v is not None else None for v in (ids, labels))
        if a is None or b is None or a[0] is not b[0]:
            continue
        if number(a[2]) == -1 and number(b[1]) == 1 and a[1] is None:
            text = "Inputs and labels are shifted here, and the model shifts the labels again: it learns to predict two tokens ahead."
            yield code.seen(ID, text, labels or record, made[0])
            return


def _each_shifted(ids: Val, labels: Val) -> bool:
    """`[block[1:] + [end] for block in blocks]` beside `blocks`."""
    if labels.op != "comp" or len(labels.args) < 2 or labels.args[1] is not ids:
        return False
    return any(v.op == "item" and v.args[1].op == "slice" and number(v.args[1].args[0]) == 1 for v in made_of(labels.args[0], deep=False))
