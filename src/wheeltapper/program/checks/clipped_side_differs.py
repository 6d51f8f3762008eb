"""The two sides of a clipped objective do not agree where nothing is clipped.

What it sees
------------
`max(-A * ratio, A * clip(ratio))`: one of the two sides has another sign or another factor.

Why it matters
--------------
The objective is then no bound of anything: one side always wins, and it is the wrong one half of the time.

How it decides
--------------
Of the two arguments of min or max one is clipped. Both are worked out where the ratio is one: they must be equal
there.

When it is wrong
----------------
If the two sides are meant to differ; no published objective does so.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.formula import ends, worth_at
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

CLIPS = {"clamp", "clip"}

ID = "clipped-side-differs"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            if value.op != "call" or value.name not in ("min", "max", "minimum", "maximum") or len(value.args) != 2:
                continue
            clipped = [_clips(a) for a in value.args]
            if clipped.count(True) != 1 or {id(e) for e in ends(value.args[0])} != {id(e) for e in ends(value.args[1])}:
                continue
            given = {id(e): 0.7 for e in ends(value)}
            a, b = (worth_at(x, given) for x in value.args)
            if a is not None and b is not None and abs(a - b) > 1e-3 and _is_ratio(value):
                yield code.seen(ID, "The two sides differ where nothing is clipped: a sign or a factor is wrong in one of them.", value)
                return


def _clips(value: Val) -> bool:
    return any(v.op == "call" and v.name in CLIPS for v in made_of(value, deep=False, stop=lambda v: v.op == "net"))


def _is_ratio(value: Val) -> bool:
    """The exponential of a difference: one where nothing has changed yet."""
    return any(v.op == "call" and v.name == "exp" and v.args and v.args[0].op == "bin" and v.args[0].name == "Sub" for v in made_of(value, deep=False))
