"""The agent acts at random all the time.

What it sees
------------
`if random() < eps: act at random` where eps is a high number that nothing ever lowers.

Why it matters
--------------
What is collected shows nothing of the policy, and the returns stay those of chance.

How it decides
--------------
The threshold beside a fresh random number, on a path that picks a random action, is a constant of 0.5 or more.

When it is wrong
----------------
Where data is collected at random on purpose, for offline learning.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "exploration-constant"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if (
            call.name not in ("sample", "randint", "choice", "randrange", "integers")
            or not call.guards
            or not (story.named("reset") and story.named("step"))
        ):
            continue
        guard = call.guards[-1]
        test = guard.test
        if test.op != "cmp" or len(test.args) != 2 or not guard.taken:
            continue
        threshold = number(test.args[1]) if test.name in ("Lt", "LtE") else None
        if threshold is None and test.name in ("Gt", "GtE") and (kept := number(test.args[1])) is not None:
            threshold = 1 - kept
        others = [c for c in story.calls if c.node is call.node and c.guards and len(c.guards[-1].test.args) == 2]
        if any(number(c.guards[-1].test.args[1]) is None for c in others):
            continue  # the same line is also played with a share that changes
        if threshold is not None and threshold >= 0.5 and _drawn(test.args[0]) and call.loops:
            yield code.seen(
                ID,
                f"The action is random with probability {threshold:g}, and nothing ever lowers it.",
                test.args[1],
                call,
            )
            return


def _drawn(value: Val) -> bool:
    return any(v.op == "call" and v.name in ("random", "rand", "uniform") for v in made_of(value))
