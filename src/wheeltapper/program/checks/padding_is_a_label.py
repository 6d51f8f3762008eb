"""Padding is counted as a label.

What it sees
------------
A collator that pads labels with a token id and not with -100; or metrics that replace the labels and keep the marks.

Why it matters
--------------
Most of the loss is predicting padding; the references of a metric are empty.

How it decides
--------------
`label_pad_token_id` that is not -100; `where(labels == -100, labels, pad)`, which keeps exactly the marks.

When it is wrong
----------------
If the loss ignores that id itself.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import number
from wheeltapper.program.reading import Code

ID = "padding-is-a-label"
CAUSE: str | None = "all-labels-masked"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("DataCollatorForSeq2Seq", "DataCollatorForTokenClassification"):
        given = call.kwargs.get("label_pad_token_id")
        if given is not None and number(given) != -100 and (number(given) is not None or "pad" in given.name):
            yield code.seen(ID, "Labels are padded with a token id and not with -100: the padding counts in the loss.", given, call)
            return
    yield from _kept_marks(code)


def _kept_marks(code: Code) -> Iterator[Finding]:
    """`where(x == -100, x, other)` in a function of metrics: the real labels are replaced and the marks stay."""
    for call in code.program.calls.get("where", []):
        if len(call.args) != 3 or not isinstance(call.args[0], ast.Compare):
            continue
        test = call.args[0]
        marks = [ast.unparse(c) for c in test.comparators]
        same = ast.unparse(test.left) == ast.unparse(call.args[1])
        if same and marks == ["-100"] and isinstance(test.ops[0], ast.Eq):
            yield code.finding(ID, "The marks of padding are kept and the labels are replaced: the condition is the wrong way round.", call)
            return

