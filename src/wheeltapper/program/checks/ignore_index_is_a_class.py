"""The loss ignores a class.

What it sees
------------
`ignore_index=0` (or another class) in a loss whose targets are not padded.

Why it matters
--------------
The ignored class is never learned: in segmentation the background, in classification the first class.

How it decides
--------------
The index lies within the classes, and nothing in the program pads or names padding.

When it is wrong
----------------
If that class is meant to be left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import number
from wheeltapper.program.reading import Code

ID = "ignore-index-is-a-class"
CAUSE: str | None = "all-labels-masked"
DECIDES = True

PADS = re.compile(r"pad", re.I)


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        ignored = number(loss.kwargs.get("ignore_index"))
        if ignored is None or ignored < 0 or ignored >= 100:
            continue
        if any(_pads(s.text) for s in code.program.scripts):
            continue
        yield code.seen(
            ID,
            f"The loss ignores class {ignored:g}, which is no padding: it is never learned.",
            loss.kwargs["ignore_index"],
            loss,
        )
        return


def _pads(text: str) -> bool:
    """Padding of sequences; that of convolutions and crops is none."""
    rest = re.sub(r"padding\s*=\s*[\d\"'(]|padding_mode", "", text)
    return bool(PADS.search(rest))
