"""An actor makes the value of its own actions smaller, or pays for exploring.

What it sees
------------
An actor's loss in which the critic's value of its action stands with a plus, or a soft target that adds the log-
probability instead of subtracting it.

Why it matters
--------------
The policy learns to do what is worst; or it is rewarded for being certain.

How it decides
--------------
The critic is a network that another loss fits to `reward + discount * value`. Its answer to what the actor did goes
into the actor's loss with a plus; or, inside of such a target, the log-probability of the next action goes in with a
plus.

When it is wrong
----------------
If the critic predicts costs and not rewards.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.judge_does_not_reach import _belongs, _moved_after
from wheeltapper.program.play.derive import bootstrap, is_log_prob, learns_through
from wheeltapper.program.play.signs import signs_in
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "value-made-smaller"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    critics: list[Val] = []
    for _, loss in story.backwards:
        sums = list(bootstrap(loss))
        for total, _, part in sums:
            for log in (v for v in made_of(part) if is_log_prob(v)):
                if signs_in(part, log) == {1}:
                    yield code.seen(ID, "The log-probability of the next action is added to its value; it must be subtracted.", part, total)
                    return
        if sums:
            critics += [n.args[0] for n in learns_through(story, loss)]
    for call, loss in story.backwards:
        moved = _moved_after(story, call)
        for judge in made_of(loss, deep=False):
            if judge.op != "net" or judge.no_grad or _belongs(story, judge.args[0], moved) or not _belongs(story, judge.args[0], critics):
                continue
            acted = any(v.op == "net" and _belongs(story, v.args[0], moved) for a in judge.args[1:] for v in made_of(a))
            if acted and signs_in(loss, judge) == {1}:
                yield code.seen(ID, "The value of the actor's own action goes into its loss with a plus: it is made smaller.", loss, judge)
                return
