"""The critic never sees what the generator makes.

What it sees
------------
An adversarial pair in which the critic's own loss is made of real data only.

Why it matters
--------------
The critic learns to call everything real, and the generator gets no direction from it.

How it decides
--------------
The generator's loss is the critic's answer to what the generator makes. In no loss after which the critic's optimizer
steps is the critic given anything that the generator made.

When it is wrong
----------------
If another model makes the fakes.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.judge_does_not_reach import _belongs, _moved_after
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "critic-never-sees-fakes"
CAUSE: str | None = "generator-without-noise"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2 or not story.complete:
        return
    losses = [(_moved_after(story, call), loss) for call, loss in story.backwards]
    for moved, loss in losses:
        for judge in made_of(loss, deep=False):
            if judge.op != "net" or judge.order < 0 or _belongs(story, judge.args[0], moved) or not _made_by(story, judge, moved):
                continue
            own = [one for other, one in losses if _belongs(story, judge.args[0], other)]
            seen = [v for one in own for v in made_of(one) if v.op == "net" and v.args[0] is judge.args[0]]
            shown = any(_made_by(story, v, moved) for v in seen) or _other_makers(seen, judge)
            if len(seen) > 1 and not shown and _is_game(judge):
                text = "The critic's own losses are made of real data only: it is never shown what the generator makes."
                yield code.seen(ID, text, seen[-1], own[-1], judge)
                return


def _made_by(story: Story, judged: Val, moved: list[Val]) -> bool:
    return any(v.op == "net" and _belongs(story, v.args[0], moved) for a in judged.args[1:] for v in made_of(a))


def _other_makers(seen: list[Val], judge: Val) -> bool:
    return any(v.op == "net" and v.args[0] is not judge.args[0] for one in seen for a in one.args[1:] for v in made_of(a))


def _is_game(judge: Val) -> bool:
    """The judged thing comes from noise alone, and the judge is given nothing else: a generator's sample."""
    given = judge.args[1:]
    return len(given) == 1 and any(v.op == "call" and v.name in ("randn", "rand", "normal", "randn_like") for v in made_of(given[0]))
