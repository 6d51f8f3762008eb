"""What is evaluated is scaled otherwise than what is trained on.

What it sees
------------
Data for training that is divided, standardised or normalised, beside data for validation or testing that misses one
of these steps, or has one more.

Why it matters
--------------
The network is judged on inputs of another scale than those it has learned: the score says nothing.

How it decides
--------------
Both are followed back to where they were loaded, through functions, maps and pipelines of transforms, and every step
that scales is counted. The same steps must be there on both sides.

When it is wrong
----------------
If the other data was scaled when it was stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.preparation import scaling, ways
from wheeltapper.program.play.roles import TRAIN, Use, uses
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "prepared-otherwise"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True

UNKNOWN = ("param", "free", "index", "obj")


def check(code: Code) -> Iterator[Finding]:
    every = [u for u in uses(code.story) if _is_known(u.data)]
    trained = [u for u in every if u.role == TRAIN and _learns(u.call)]
    for use in every:
        mine = [t for t in trained if _model(t.call) is _model(use.call)]
        if use.role == TRAIN or not mine:
            continue
        here = scaling(use.data)
        there = [scaling(t.data) for t in mine]
        if all(here != one for one in there):
            extra = (there[0] - here) or (here - there[0])
            which = "misses" if there[0] - here else "has, and training has not"
            yield code.seen(ID, f"What is evaluated {which}: {', '.join(extra)}.", _place(use), use.call, mine[0].call)
            return


def _learns(call: Val) -> bool:
    """Not a scaler or an encoder that is fitted."""
    return call.name not in ("fit", "partial_fit") or len(call.args) > 2 or bool(call.kwargs)


def _model(call: Val) -> Val | None:
    """The model that is fitted and scored; a trainer that is given its data is its own."""
    return call.args[0] if call.args and call.name not in ("Trainer",) and call.args[0].op in ("call", "obj") else call


def _is_known(data: Val) -> bool:
    parts = list(ways(data))
    return any(v.op == "call" and not v.name.startswith("fit") for v in parts) and not any(v.op in UNKNOWN for v in parts[-1:])


def _place(use: Use) -> Val:
    """Where the difference stands: the last step that scales, else the data itself."""
    return next((v for v in ways(use.data) if v.op in ("bin", "call") and v.node is not None), use.data)
