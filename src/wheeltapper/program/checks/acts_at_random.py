"""The policy that is judged acts at random.

What it sees
------------
An exploration rate of one where the policy is evaluated.

Why it matters
--------------
What is reported is the score of chance, whatever was learned.

How it decides
--------------
A function acts at random with a probability that it is given, and else as the network says; a call that is not a part
of the training gives it a probability of one or more.

When it is wrong
----------------
If a random policy is measured for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

DRAWN = {"random", "rand", "uniform"}

ID = "acts-at-random"
CAUSE: str | None = "eval-broken"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    drawn = code.story.named("randint", "integers", "choice", "sample", "randrange")
    for call in drawn:
        others = [c for c in drawn if c.node is call.node and not any(_always(g.test) for g in c.guards)]
        for guard in call.guards if others and call.loops and not _is_kept(code, call) else ():
            if guard.taken and _always(guard.test):
                yield code.seen(ID, "The policy is judged with an exploration rate of one: every action is random.", call, guard.test)
                return


def _is_kept(code: Code, call: Val) -> bool:
    """What was done is put into a memory: it is filled at random before the training."""
    puts = code.story.named("append", "add", "push", "store", "put", "remember")
    return any(c.loops[-1:] == call.loops[-1:] and _size(c) > 2 for c in puts)


def _size(put: Val) -> int:
    """How much is put: a transition has a state, an action, a reward, and more."""
    told = put.args[1:]
    inner = [len(v.items or v.args) + len(v.kwargs) for v in told if v.op in ("tuple", "call", "obj", "net")]
    inner += [len(v.fields["@args"].items or ()) for v in told if "@args" in v.fields]
    return max([len(told), *inner])


def _always(test: Val) -> bool:
    """`random() < 1.0`"""
    if test.op != "cmp" or test.name not in ("Lt", "LtE") or len(test.args) != 2:
        return False
    known = number(test.args[1])
    drawn = any(v.op == "call" and v.name in DRAWN for v in made_of(test.args[0], deep=False))
    return drawn and known is not None and known >= 1
