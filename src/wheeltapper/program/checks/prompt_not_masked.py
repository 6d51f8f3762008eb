"""The loss counts the prompt too.

What it sees
------------
A record of prompt and answer, tokenised apart and put together, whose labels are the whole sequence.

Why it matters
--------------
Most of the loss is then about the prompt, which is given at use: the answer is learned slowly, and the loss is
about something else.

How it decides
--------------
The input of a record is a sum of two token lists and its labels are a copy of the input, in a program that keeps
the two apart.

When it is wrong
----------------
If the whole text is to be learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, plain
from wheeltapper.program.reading import Code

ID = "prompt-not-masked"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for record in code.story.dicts:
        ids, labels = record.fields.get("input_ids"), record.fields.get("labels")
        if ids is None or labels is None:
            continue
        if _joined(ids) and _copied(labels) is _copied(ids):
            yield code.seen(
                ID, "Prompt and answer are put together and both are labels.", labels, record, grade="suspected"
            )
            return


def _copied(value: Val) -> Val:
    value = plain(value)
    while value.op == "call" and value.name in ("copy", "clone", "list", "deepcopy") and value.args:
        value = plain(value.args[0])
    return value


def _joined(value: Val) -> bool:
    """`(prompt + answer)[:n]` of two lists of tokens."""
    value = plain(value)
    while value.op == "item" and value.args[1].op == "slice":
        value = plain(value.args[0])
    return value.op == "bin" and value.name == "Add" and all(_tokens(a) for a in value.args)


def _tokens(value: Val) -> bool:
    return any(v.op == "item" and v.data == "input_ids" for v in (value, *value.args)) or (
        value.op == "call" and value.name == "encode"
    )
