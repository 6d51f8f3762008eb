"""The first masked layer sees what it is to predict.

What it sees
------------
An autoregressive network of masked convolutions whose first layer is of the kind that sees its own place ("B").

Why it matters
--------------
Every pixel is given the answer: the bits per pixel go to zero, which no honest density can.

How it decides
--------------
All masked layers of the program are of kind "B" and none is of kind "A", and the target of the loss is the input of
the network.

When it is wrong
----------------
If the input is shifted by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.lineage import pairs_of
from wheeltapper.program.play.value import Val, plain, text_of
from wheeltapper.program.reading import Code

ID = "sees-its-own-pixel"
CAUSE: str | None = "causal-leak"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    made = [
        (c, kind)
        for c in story.calls
        if c.args and c.args[0].op == "obj" and "mask" in c.name.lower() and (kind := _kind(c))
    ]
    if not made or any(kind == "A" for _, kind in made):
        return
    for loss, given, target in pairs_of(story):
        if plain(given) is plain(target):
            text = 'The first masked layer is of kind "B" and sees the pixel that is to be predicted; it must be "A".'
            yield code.seen(ID, text, made[0][0], loss)
            return


def _kind(call: Val) -> str | None:
    return next(
        (t.upper() for a in (*call.args[1:], *call.kwargs.values()) if (t := text_of(a)) and t.upper() in ("A", "B")),
        None,
    )
