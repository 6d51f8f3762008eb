"""Pictures are turned and their masks are not.

What it sees
------------
An augmentation that moves the pixels of the inputs (a flip, a turn, a shift) in a task whose target is a picture itself,
and that the targets do not pass.

Why it matters
--------------
The mask lies where the object no longer is: half of the training pairs are wrong.

How it decides
--------------
The loss compares an output of a convolution pixel by pixel with the target; the input passes `flip`, `rot90` or `roll` on
its way and the target, which comes from the same data, passes none.

When it is wrong
----------------
If the target does not change under that move, or is moved inside the loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.lineage import pairs_of
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "picture-turned-alone"
CAUSE: str | None = "target-misaligned"
DECIDES = True

MOVES = {"flip", "hflip", "vflip", "fliplr", "flipud", "rot90", "rotate", "roll", "affine"}
PIXELS = {"Conv2d", "ConvTranspose2d", "Conv3d", "Upsample"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss, given, target in pairs_of(story):
        if loss.name == "fit" or not any(v.op == "net" and v.args[0].name in PIXELS for v in produced(loss.args[0])):
            continue
        moved = _moves(given)
        if moved and not _moves(target) and not any(v.op == "net" for v in made_of(target)):
            yield code.seen(ID, f"The inputs pass {moved[0].name or 'a mirror'} and the masks do not.", moved[0], loss)
            return


def _moves(value: Val) -> list[Val]:
    """What moves the pixels; axis 0, the samples themselves, is another matter."""
    return [v for v in made_of(value, deep=False) if (v.op == "call" and v.name in MOVES) or _is_mirror(v)]


def _is_mirror(value: Val) -> bool:
    """`image[:, ::-1]`"""
    parts = (value.args[1].items or []) if value.op == "item" and len(value.args) > 1 else []
    return any(p.op == "slice" and number(p.args[2]) == -1 for p in parts)
