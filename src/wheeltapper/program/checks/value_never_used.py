"""Something is worked out and never used.

What it sees
------------
A mask, a weight, a split, a sampler, the output of a network that is computed and that nothing reads; an element of a
`zip` that the loop leaves aside; a layer that no method applies; a helper that freezes, detaches or restores and is
never called.

Why it matters
--------------
Nobody writes a line for nothing: it was to change the loss, the data or the score, and does not. Training goes on
without an error.

How it decides
--------------
The name is set in a function that runs, by an expression that does nothing but compute, and is read nowhere in it.
One of several results of a call is left open, and so are plain numbers, names and calls made for their effect.

When it is wrong
----------------
If the line is left over from an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code
from wheeltapper.program.unused import unused_elements, unused_helpers, unused_layers, unused_values

ID = "value-never-used"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for one in chain(unused_values(code), unused_elements(code), unused_layers(code)):
        text = f"`{one.name}` is worked out and never used."
        yield code.finding(ID, text, one.node, *one.ends[:3], severity="watch", grade="suspected")
        return
    for one in unused_helpers(code):
        text = f"{one.name}() acts on what is trained and is never called."
        yield code.finding(ID, text, one.node, severity="watch", grade="suspected")
        return
