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
from wheeltapper.program.play.value import Val, made_of, number
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
        if any(_pads(s.text) for s in code.program.scripts) or (ignored == 0 and _is_sequence(loss)):
            continue
        yield code.seen(
            ID,
            f"The loss ignores class {ignored:g}, which is no padding: it is never learned.",
            loss.kwargs["ignore_index"],
            loss,
        )
        return


def _is_sequence(loss: Val) -> bool:
    """Tokens of sequences, flattened: 0 is the usual padding, and an imported dataset may put it there."""
    shapes = {"reshape", "view", "flatten", "transpose", "permute"}
    return any(v.op == "call" and v.name in shapes for a in loss.args[:2] for v in made_of(a, deep=False))


def _pads(text: str) -> bool:
    """Padding of sequences; that of convolutions and crops is none."""
    rest = re.sub(r"padding\s*=\s*[\d\"'(]|padding_mode", "", text)
    return bool(PADS.search(rest))
