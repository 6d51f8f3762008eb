"""Training and evaluation give the network numbers of another size.

What it sees
------------
A network that is trained on inputs multiplied by one known number (1/255, 1/32768, 2/255) and evaluated on inputs
without it, or the other way round.

Why it matters
--------------
The network has never seen such numbers: the score says nothing about it.

How it decides
--------------
The first input of the network is followed back to the data, in the loss and in the evaluation. All factors on both ways
are known numbers, both end at data read in the same way, and their products differ at least fiftyfold.

When it is wrong
----------------
If the two files hold numbers of another size themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.inputs import BENDS
from wheeltapper.program.play.lineage import SCALES, lineage
from wheeltapper.program.play.story import Story
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "input-of-another-size"
CAUSE: str | None = "eval-normalisation-mismatch"
DECIDES = True
APART = 50.0
OPENS = {"load", "loadtxt", "read_csv", "imread", "open", "fromfile", "memmap", "read_image"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for train in training_applications(story):
        mine = _factor(train.args[1])
        if mine is None:
            continue
        for test in story.evaluations:
            if len(test.args) < 2 or not same_network(test.args[0], train.args[0]):
                continue
            theirs = _factor(test.args[1])
            if theirs is None or mine[1] != theirs[1] or not mine[1]:
                continue
            ratio = mine[0] / theirs[0]
            if ratio >= APART or ratio <= 1 / APART:
                text = f"The network is evaluated on inputs {max(ratio, 1 / ratio):.3g} times {'smaller' if ratio > 1 else 'larger'} than those it is trained on."
                places = [v for v in (mine[2], theirs[2]) if v is not None]
                yield code.seen(ID, text, test, train, test.args[1], train.args[1], *places)
                return


def training_applications(story: Story) -> list[Val]:
    """The applications that the losses are made of, nearest to the loss first."""
    out = {id(v): v for loss in story.losses for v in made_of(loss) if v.op == "net" and len(v.args) > 1}
    return [v for v in out.values() if "forward" not in v.inside and story.is_trained(v.args[0])]


def same_network(a: Val, b: Val) -> bool:
    return a is b or a.fields.get("@copy") is b


def _factor(value: Val) -> tuple[float, str, Val | None] | None:
    """The product of all known factors, how the data at its end is read, and the factor nearest to it; None where one is not known."""
    total, last, way = 1.0, None, lineage(value)
    for one in way:
        if one.op == "bin" and one.name in ("Mult", "Div"):
            known = number(one.args[1]) if number(one.args[0]) is None else number(one.args[0])
            if not known and any(is_random(v) for v in made_of(one.args[1])):
                continue  # a random gain is near one
            if not known:
                return None
            total, last = total * (known if one.name == "Mult" else 1 / known), one
        elif one.op == "net" or (one.op == "call" and (one.name in BENDS or one.name in SCALES or one.name in ("ToTensor", "to_tensor"))) or (one.op == "bin" and one.name not in ("Add", "Sub")):
            return None
    root = way[-1]
    if root.op == "call" and root.name in OPENS:
        return total, root.name, last
    return (total, root.op, last) if root.op in ("elem", "attr", "lib") else None
