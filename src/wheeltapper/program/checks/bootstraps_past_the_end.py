"""The target looks past the end of an episode.

What it sees
------------
`r + gamma * Q(s')` without a factor that is zero where the episode ended.

Why it matters
--------------
The value of a state after the end, which does not exist, is added to every last reward: values drift upwards.

How it decides
--------------
The factors beside the discounted output of the network are all known, and none is made of a difference from one, a
comparison, a negation or a mask.

When it is wrong
----------------
In tasks that never end, or where the memory stores it in the discount.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap, factors
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "bootstraps-past-the-end"
CAUSE: str | None = None
DECIDES = True
DONE = re.compile(r"^(d|dones?|terminal\w*|terminated|terminations?|terms?|not_done|masks?|is_done|ended|end)$|_dones?$", re.I)


def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for total, discount, net in bootstrap(loss):
            side = next((a for a in total.args if any(v is net for v in made_of(a))), None)
            if (
                side is None
                or any(_ends(f) for f in factors(side) if f is not net and f is not discount)
                or _ends_after(net)
            ):
                continue
            if all(f is net or number(f) is not None for f in factors(side)) and _knows_ends(code, total):
                yield code.seen(
                    ID,
                    "The target adds the value of the next state at the end of an episode too.",
                    total,
                    grade="suspected",
                )
                return


def _knows_ends(code: Code, total: Val) -> bool:
    """Whether the function that makes the target has a flag for the end of an episode at hand."""
    func = code.program.func_of.get(total.node) if total.node is not None else None
    nodes = ast.walk(func.node) if func is not None else code.program.entry.parents
    return any(isinstance(n, ast.Name) and DONE.search(n.id) for n in nodes)


def _ends(value: Val) -> bool:
    return number(value) is None


def _ends_after(net: Val) -> bool:
    """`next_value[done] = 0`, `where(done, 0, next_value)`."""
    return any(
        v.op == "call" and v.name in ("setitem", "where", "masked_fill", "masked_fill_")
        for v in made_of(net, deep=False)
    )
