"""The generator is given no fresh noise.

What it sees
------------
A generator whose input in training is a tensor of one number, or noise that was drawn once before the loop.

Why it matters
--------------
It can make as many samples as it is given inputs: one, or one batch. Everything else it is asked for is the same.

How it decides
--------------
A trained network makes what another trained network judges, both in one loss and with two optimizers. All content of
the maker's input is a filled tensor, or a call for random numbers outside of the loop that trains.

When it is wrong
----------------
If the variety comes from random parts inside the generator (dropout as noise); with such layers it is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.inputs import origins
from wheeltapper.program.play.slopes import filled_with
from wheeltapper.program.play.story import RANDOM, Story
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "generator-without-noise"
CAUSE: str | None = "mode-collapse"
DECIDES = True
REORDERS = {"shuffle", "permutation", "randperm", "choice", "sample"}  # of data that is there


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if len(story.optimizers) < 2:
        return
    for call, loss in story.backwards:
        for maker in _makers(story, loss):
            ends = [e for a in maker.args[1:] for e in origins(a)]
            if not ends or any(p.name.startswith("Dropout") for p in story.parts_of(maker.args[0])):
                continue
            if all(filled_with(e) is not None for e in ends):
                yield code.seen(
                    ID,
                    "The generator is given the same number everywhere: it can make one sample only.",
                    maker,
                    ends[0],
                )
                return
            if all(_drawn_before(e, call) for e in ends):
                yield code.seen(
                    ID,
                    "The generator's noise is drawn once, before the loop: it learns those inputs only.",
                    ends[0],
                    maker,
                )
                return


def _makers(story: Story, loss: Val) -> Iterator[Val]:
    for judge in made_of(loss):
        if judge.op != "net" or len(judge.args) < 2:
            continue
        owner = _mover(story, judge.args[0])
        for made in (v for a in judge.args[1:2] for v in made_of(a, deep=False)):
            if made.op == "net" and len(made.args) > 1 and not made.no_grad:
                other = _mover(story, made.args[0])
                if owner is not None and other is not None and owner is not other:
                    yield made


def _mover(story: Story, network: Val) -> Val | None:
    return next((o for o in story.optimizers if any(n is network for n in story.moved_by(o))), None)


def _drawn_before(value: Val, backward: Val) -> bool:
    return value.op == "call" and value.name in RANDOM - REORDERS and len(value.loops) < len(backward.loops) and value.order >= 0
