"""The inputs are scaled to nothing, or blown up.

What it sees
------------
Inputs that are divided by known numbers twice (by 255, and by a spread in units of pixels), or multiplied by a large
number right before the first layer.

Why it matters
--------------
Scaled twice, all inputs are nearly the same number and the differences between samples are lost. Blown up, the first
layer's outputs are hundreds of times too large, and so are the gradients.

How it decides
--------------
The known factors between data and first layer are multiplied. Two divisions, one of them by 255 or so, with a product
below 1/4000; or a division by 255 followed by a shift of more than 5, which belongs to the other unit. A factor of 100
and more, with nothing that brings it back, is suspected.

When it is wrong
----------------
If the data's unit asks for it: then the factors do not stand one after the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.inputs import Scaling, first_layers, scaling_of
from wheeltapper.program.play.lineage import lineage
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "input-scaled-beyond"
CAUSE: str | None = "input-not-normalised"
DECIDES = True

PIXELS = (1 / 255, 1 / 256, 1 / 127.5)
TWICE = 1 / 4000  # 1/255 and a spread of 16 pixels and more
BLOWN_UP = 100.0


def check(code: Code) -> Iterator[Finding]:
    for layer in first_layers(code.story):
        found = scaling_of(layer.args[1])
        at = _twice(found)
        if at is not None:
            text = f"The inputs are scaled by known numbers twice, together by {found.total:.2g}: all of them are nearly the same."
            yield code.seen(ID, text, at, layer)
            return
        if found.factors and abs(found.factors[0][0]) >= BLOWN_UP and abs(found.total) >= BLOWN_UP:
            factor, at = found.factors[0]
            if not any(_after(v, at) for _, v in found.shifts):
                yield code.seen(
                    ID, f"The inputs are multiplied by {factor:g} before the first layer.", at, layer, grade="suspected"
                )
                return


def _twice(found: Scaling) -> Val | None:
    pixels = [v for f, v in found.factors if any(abs(f / p - 1) < 0.01 for p in PIXELS)]
    if not pixels:
        return None
    others = [v for f, v in found.factors if v is not pixels[-1] and f < 0.1]
    shifted = [v for s, v in found.shifts if abs(s) > 5 and _after(v, pixels[-1])]
    if (others and abs(found.total) < TWICE) or shifted:
        return (others or shifted)[0]
    return None


def _after(value: Val, before: Val) -> bool:
    """Whether `value` was made of `before`, and not the other way round."""
    return any(v is before for v in lineage(value))
