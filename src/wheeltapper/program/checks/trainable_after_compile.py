"""Layers are thawed or frozen after the model was compiled.

What it sees
------------
`trainable` is changed between compile() and fit(), and the model is not compiled again.

Why it matters
--------------
Keras fixes what is trained when the model is compiled: the change has no effect, and the old rate stays.

How it decides
--------------
The order of the calls that one program makes: compile, a change of `trainable`, fit, and no compile in between.

When it is wrong
----------------
If a custom loop reads the variables anew.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import text_of
from wheeltapper.program.reading import Code

ID = "trainable-after-compile"
CAUSE: str | None = "frozen-parameters"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    compiled = [c.order for c in story.calls if c.name == "compile" and ("optimizer" in c.kwargs or "loss" in c.kwargs)]
    for fit in story.named("fit"):
        before = [order for order in compiled if order < fit.order]
        if not before:
            continue
        changed = [
            c for c in story.named("setattr") if before[-1] < c.order < fit.order and len(c.args) > 2 and text_of(c.args[1]) == "trainable"
        ]
        if changed:
            yield code.seen(ID, "trainable is changed after compile() and the model is not compiled again: the change has no effect.", changed[0], fit)
            return
