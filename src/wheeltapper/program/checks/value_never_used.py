"""Something is worked out and never used.

What it sees
------------
A mask, the answer of a network, another form of a batch (normalised, detached, shuffled), a state that was to be put
back, a loader or a generator that is made and that nothing reads, while what it was made of, or its twin, is used; the
position of a loop over the data, or one of two sets of parameters, that the loop leaves aside.

Why it matters
--------------
What was computed was meant to go somewhere, and something else stands in its place: the program runs, and trains
another thing than it says.

How it decides
--------------
The name is set in a function that the training enters, by an expression that does nothing but compute, and is read
nowhere in it. Only what has a like in whose place it could stand counts, and only if no comment still names it.

When it is wrong
----------------
If the line is left over from an earlier version.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.reading import Code
from wheeltapper.program.unused import bodies_of, idle_elements, idle_positions, unused_values

ID = "value-never-used"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or not code.story.losses:
        return
    bodies = list(bodies_of(code))
    for body in bodies:
        for one in idle_positions(body):
            text = f"`{one.name}` goes through the data and nothing reads it: every turn takes the same part."
            yield code.finding(ID, text, one.node, *one.instead)
            return
    for body in bodies:
        for one in (*unused_values(body), *idle_elements(body)):
            text = f"`{one.name}` is worked out and never used."
            yield code.finding(ID, text, one.node, *one.instead[:4], severity="watch", grade="suspected")
            return
