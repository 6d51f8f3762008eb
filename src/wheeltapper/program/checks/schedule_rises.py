"""The rate of an agent rises to its peak at the end.

What it sees
------------
A schedule given to stable-baselines3 as a function that is larger at the end of the training than at its start.

Why it matters
--------------
The function gets the progress that is *left*, from 1 to 0: the rate begins at nothing and is highest when it should
be lowest.

How it decides
--------------
The function is asked for its value at 1 and at 0, by arithmetic on what it returns.

When it is wrong
----------------
A warm-up over the whole run on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import const, number
from wheeltapper.program.reading import Code

ID = "schedule-rises"
CAUSE: str | None = "schedule-never-decays"
DECIDES = True

AGENTS = {"PPO", "A2C", "DQN", "SAC", "TD3", "DDPG", "QRDQN", "TQC", "RecurrentPPO", "MaskablePPO", "TRPO", "ARS"}


def check(code: Code) -> Iterator[Finding]:
    player = code.story.player
    for call in list(code.story.calls):
        if call.op != "call" or call.name not in AGENTS or call.origin.startswith("?"):
            continue
        for name in ("learning_rate", "clip_range"):
            given = call.kwargs.get(name)
            if given is None or given.op not in ("func", "bound") or given.node is None:
                continue
            before = len(player.calls)
            start, end = (player.apply(given, (const(left),), {}, given.node) for left in (1.0, 0.0))
            del player.calls[before:]
            first, last = number(start), number(end)
            if first is not None and last is not None and last > 2 * first:
                yield code.seen(ID, f"{name} begins at {first:g} and ends at {last:g}: the function gets the progress that is left.", start, given, call)
                return

