"""A feature is made of what is to be predicted.

What it sees
------------
A column of a table that is computed from the target column and stays among the features.

Why it matters
--------------
The model reads the answer off that column: the score is near perfect, and at use the column does not exist yet.

How it decides
--------------
A column is set to an expression of the target column, and the features are the table without a list of columns that
names the target and not this one.

When it is wrong
----------------
If the column is dropped by something unseen.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, text_of
from wheeltapper.program.reading import Code

ID = "column-made-of-the-target"
CAUSE: str | None = "target-leak"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for drop in story.named("drop"):
        dropped = {
            t for a in (*drop.args[1:], *drop.kwargs.values()) for v in made_of(a) if (t := text_of(v)) is not None
        }
        for put in story.named("setitem"):
            name = text_of(put.args[1])
            if name is None or name in dropped or put.order > drop.order:
                continue
            source = next(
                (
                    v
                    for v in made_of(put.args[2], deep=False)
                    if _column(v) in dropped and _column(v) not in (None, name)
                ),
                None,
            )
            if source is not None and _is_target(code, _column(source)):
                text = f"The column {name!r} is made of {_column(source)!r}, which is to be predicted, and stays among the features."
                yield code.seen(ID, text, put, drop)
                return


def _column(value: Val) -> str | None:
    if value.op == "attr":
        return value.name
    return value.data if value.op == "item" and isinstance(value.data, str) else None


def _is_target(code: Code, name: str | None) -> bool:
    """Whether the column is taken by itself, as targets are."""
    wanted = [
        *(c.args for c in code.story.calls if c.name in ("DMatrix", "Dataset", "fit", "train_test_split", "Pool"))
    ]
    return any(_column(v) == name for args in wanted for a in args[1:] for v in made_of(a, deep=False))
