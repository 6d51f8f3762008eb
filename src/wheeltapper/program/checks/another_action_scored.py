"""The log-probability is that of another action than the one taken.

What it sees
------------
`dist.log_prob(dist.sample())` beside an action that was sampled before and given to the environment.

Why it matters
--------------
The reward of one action strengthens another, drawn apart: what is learned is noise.

How it decides
--------------
The argument of `log_prob` is a fresh sample of the same distribution, and another sample of it goes to the
environment.

When it is wrong
----------------
If the fresh sample is the one that is used (a reparametrised policy).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of, plain
from wheeltapper.program.reading import Code

ID = "another-action-scored"
CAUSE: str | None = "labels-shuffled"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    acted = [
        v for c in story.named("step") for a in c.args[1:] for v in made_of(a) if v.op == "call" and v.name == "sample"
    ]
    for call in story.named("log_prob"):
        drawn = plain(call.args[1]) if len(call.args) > 1 else None
        if drawn is None or drawn.op != "call" or drawn.name != "sample" or any(v is drawn for v in acted):
            continue
        if any(v.args and drawn.args and v.args[0] is drawn.args[0] for v in acted):
            yield code.seen(
                ID, "The log-probability is of a new sample, not of the action that was taken.", call, drawn
            )
            return
