"""The blank of CTC is also a letter.

What it sees
------------
Targets in which a letter has the number of the blank; or a blank beyond the classes; or a decoder that takes another
number for it.

Why it matters
--------------
That letter is never learned, or the output collapses to blanks.

How it decides
--------------
The numbers that letters are given start at zero (`enumerate` without an offset) while the blank is 0; or the blank
that the loss is given differs from the number that the decoder skips.

When it is wrong
----------------
If the first letter of the alphabet is a place holder.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import key
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "ctc-blank-is-a-letter"
CAUSE: str | None = "labels-broken"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name != "ctc_loss" or len(loss.args) < 2:
            continue
        given = loss.kwargs.get("blank")
        blank = 0.0 if given is None else number(given)
        table = next((v for v in made_of(loss.args[1]) if v.op == "comp" and _numbers(v)), None)
        if blank == 0 and table is not None and not _reserved(table):
            yield code.seen(ID, "The first letter has the number 0, and so has the blank.", table, loss)
            return
        skipped = [c for c in code.story.skipped if c is not None]
        if (
            given is not None
            and skipped
            and all(key(s) != key(given) and (number(s) != blank or blank is None) for s in skipped)
        ):
            yield code.seen(
                ID, "The loss takes another number for the blank than the decoder skips.", given, skipped[0], loss
            )
            return


def _numbers(table: Val) -> bool:
    """`{letter: place for place, letter in enumerate(letters)}`: the plain place, with nothing added."""
    return table.args[0].op == "index" and any(
        v.op == "call" and v.name == "enumerate" and len(v.args) == 1 and "start" not in v.kwargs
        for v in table.args[1:]
    )


def _reserved(table: Val) -> bool:
    """Whether the list of letters starts with something that stands for the blank."""
    for over in table.args[1:]:
        for one in over.args[:1]:
            first = (
                one.items[0]
                if one.items
                else one
                if one.op == "const"
                else one.args[0]
                if one.op == "bin" and one.args
                else None
            )
            text = (
                first.data
                if first is not None and isinstance(first.data, str)
                else first.items[0].data
                if first is not None and first.items
                else None
            )
            if isinstance(text, str) and (text[:1] in "_-<|~#" or "blank" in text.lower()):
                return True
    return False
