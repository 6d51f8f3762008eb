"""The value of the next state counts at the end of an episode, and only there.

What it sees
------------
`reward + discount * done * next_value`: the flag for the end without the `1 -`.

Why it matters
--------------
States are cut off from what follows them, and the end, after which nothing comes, is given a value.

How it decides
--------------
A factor beside the discount and the next value is a flag that comes from a field called done, terminal or the like,
as it is.

When it is wrong
----------------
If the field holds the opposite of its name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap, factors, words_on
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

DONE = re.compile(r"^(dones?|terminals?|terminated|terminations?|is_done|is_terminal|episode_ends?|next_dones?|d|term|terms)$", re.I)
OPPOSITE = re.compile(r"mask|not_|non|alive|cont|undone", re.I)

ID = "end-flag-inverted"
CAUSE: str | None = "bootstraps-past-the-end"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for total, discount, net in bootstrap(loss):
            side = next((a for a in total.args if any(v is net for v in made_of(a))), None)
            for factor in factors(side) if side is not None else ():
                if factor is net or factor is discount or number(factor) is not None:
                    continue
                if _is_flag(total, factor):
                    yield code.seen(ID, "The next value is multiplied by the flag for the end itself, not by one minus it.", total, factor)
                    return


def _is_flag(total: Val, factor: Val) -> bool:
    told = {n.id for n in ast.walk(total.node) if isinstance(n, ast.Name)} if total.node is not None else set()
    told |= {n.attr for n in ast.walk(total.node) if isinstance(n, ast.Attribute)} if total.node is not None else set()
    if any(OPPOSITE.search(name) for name in told):
        return False
    factor = plain(factor)
    if factor.op not in ("attr", "item", "batch", "elem", "param") or any(
        v.op == "net" for v in made_of(factor, deep=False, stop=lambda v: v.op == "call" and v.name in ("step", "setitem"))
    ):
        return False
    words = {factor.name, str(factor.data)} | words_on(factor, 6)
    if any(DONE.match(w) for w in words if w):
        return True
    return _named_so(total)


def _named_so(total: Val) -> bool:
    """The name by which the formula calls it, where the formula is a plain product."""
    names = [n.id for n in ast.walk(total.node) if isinstance(n, ast.Name)] if total.node is not None else []
    minus = [n for n in ast.walk(total.node) if isinstance(n, ast.Sub)] if total.node is not None else []
    return not minus and any(DONE.match(n) for n in names)
