"""Padding counts in one loss and not in the other.

What it sees
------------
A cross-entropy with `ignore_index` in one place and without it in another, on the same kind of targets.

Why it matters
--------------
The two numbers cannot be compared, and where padding counts most of the loss is about padding.

How it decides
--------------
One of training and validation loss has an ignore_index and the other has none.

When it is wrong
----------------
If only one of them has padding.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, number
from wheeltapper.program.reading import Code

ID = "ignore-index-in-one-place"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    padding = {number(e.kwargs["padding_idx"]) for e in story.named("Embedding") if "padding_idx" in e.kwargs}
    for loss in story.loss_calls:
        left_out = number(loss.kwargs.get("ignore_index"))
        if len(padding) == 1 and None not in padding and left_out is not None and left_out >= 0 and left_out not in padding:
            text = f"The loss leaves out token {left_out:g} and the embeddings are padded with {next(iter(padding)) or 0:g}: the padding is learnt."
            yield code.seen(ID, text, loss, loss.kwargs["ignore_index"])
            return
    calls = [c for c in story.named("cross_entropy", "nll_loss") if c.loops]
    trained = [c for c in calls if any(c is one for one in story.loss_calls)]
    judged = [c for c in calls if c.no_grad]
    if not trained or not judged:
        return
    told = [{_ignores(c) for c in several} for several in (trained, judged)]
    if told[0] == {False} and told[1] == {True}:
        yield code.seen(
            ID,
            "The validation loss leaves out padding and the training loss counts it.",
            trained[0],
            judged[0],
            grade="suspected",
        )


def _ignores(call: Val) -> bool:
    return "ignore_index" in call.kwargs or "weight" in call.kwargs
