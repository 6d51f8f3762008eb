"""The noise to be found is not the noise that was put in.

What it sees
------------
A network trained to find noise, where the target is drawn anew, or the noisy input or its time is not the one the
noise was put in at.

Why it matters
--------------
The target cannot be told from the input: the loss stays at the variance of the noise.

How it decides
--------------
The target of a squared error is a random draw that the input of the network is not made of; or the network is told
another random time than the one its input was made with.

When it is wrong
----------------
If the draw is meant to be independent.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.story import NUMBER_LOSSES
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "noise-is-another"
CAUSE: str | None = "target-misaligned"
DECIDES = True


TIMES = {"randint", "rand", "uniform"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in NUMBER_LOSSES or len(loss.args) < 2:
            continue
        nets = [v for v in made_of(loss.args[0], deep=False) if v.op == "net" and story.is_trained(v.args[0])]
        target = plain(loss.args[1])
        if len(nets) != 1 or len(nets[0].args) < 2:
            continue
        made = {id(v) for a in (*nets[0].args[1:], *nets[0].kwargs.values()) for v in made_of(a)}
        if (
            is_random(target)
            and target.name.startswith(("randn", "normal"))
            and story.in_training(target)
            and id(target) not in made
        ):
            yield code.seen(
                ID, "The noise that the network is to find is not in what it is given.", loss, target, nets[0]
            )
            return
        other = _other_time(nets[0])
        if other is not None:
            yield code.seen(ID, "The network is told another time than the one its input was made at.", other, nets[0])
            return


def _other_time(net: Val) -> Val | None:
    """A second draw of a time, given beside an input that was made with the first."""
    given = [*net.args[1:], *net.kwargs.values()]
    drawn = [plain(a) for a in given[1:] if plain(a).op == "call" and plain(a).name in TIMES and is_random(plain(a))]
    inside = [v for v in made_of(given[0]) if v.op == "call" and v.name == "randint" and is_random(v) and v.loops]
    noisy = any(is_random(v) and v.name.startswith("randn") for v in made_of(given[0]))
    for one in drawn:
        if one.name == "randint" and inside and noisy and all(v is not one for v in inside):
            return one
    return None
