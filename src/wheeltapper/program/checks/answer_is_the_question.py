"""What is to be answered is the question itself.

What it sees
------------
A text to be learned (labels, completion, target) that is taken from the same column as the text that is given.

Why it matters
--------------
The model learns to copy its input.

How it decides
--------------
Records that a dataset is mapped to, and calls of tokenizers: input and target are read from one column of the record,
and another column is there that nothing reads any more, or the two have names of their own.

When it is wrong
----------------
Language modelling and reconstruction, where input and target are the same on purpose: labels that are a copy of
input_ids are left out.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "answer-is-the-question"
CAUSE: str | None = "target-leak"
DECIDES = True

SIDES = (("prompt", "completion"), ("question", "answer"), ("source", "target"), ("instruction", "output"))


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.calls:
        target = call.kwargs.get("text_target")
        if target is not None and call.args and (column := _column(target)) is not None and column in _columns(call.args[-1]):
            yield code.seen(ID, f"The text to be learned is the column {column}, which is also the input.", target, call)
            return
    for record in code.story.dicts:
        for given, wanted in SIDES:
            if given in record.fields and wanted in record.fields:
                asked, answer = _columns(record.fields[given]), _columns(record.fields[wanted])
                if asked and asked == answer and len(asked) == 1:
                    place = next((v for v in made_of(record.fields[wanted]) if v.op == "dict"), record.fields[wanted])
                    yield code.seen(ID, f"{given} and {wanted} are both made of the column {next(iter(asked))}.", place, record)
                    return


def _column(value: Val) -> str | None:
    found = _columns(value)
    return found.pop() if len(found) == 1 else None


def _columns(value: Val) -> set[str]:
    """The columns of records that a text is made of."""
    return {
        str(v.data) for v in made_of(value) if v.op == "item" and isinstance(v.data, str) and v.args[0].op in ("elem", "batch", "param", "item", "call", "gen", "comp", "free")
    }
