"""The data of every turn are drawn from the same seed.

What it sees
------------
A source of random tasks or batches that is made anew, with a constant seed, in every turn of the training loop.

Why it matters
--------------
Every turn trains on the same few samples.

How it decides
--------------
Inside of the loop of a backward pass an object of the program is made with constants only, its constructor seeds a
generator with one of them, and what it draws goes into the loss.

When it is wrong
----------------
If every turn is to see the same data.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

SEEDS = {"manual_seed", "default_rng", "RandomState", "Random", "seed", "PRNGKey"}

ID = "seeded-in-every-turn"
CAUSE: str | None = "same-batch-repeated"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        if call.name not in SEEDS or not call.loops or "__init__" not in call.inside[-1:]:
            continue
        fixed = all(a.op == "const" for a in call.args[-1:]) and call.args
        outer = [pair for pair in story.backwards if pair[0].loops and call.loops[-1] is pair[0].loops[-1]]
        if not fixed or not outer or call.no_grad or call.guards:
            continue
        drawn = {id(v) for _, loss in outer for v in made_of(loss)}
        if any(id(a) in drawn for a in (call, *call.args)):
            yield code.seen(ID, "The source of the data is made with the same seed in every turn: every turn sees the same samples.", call, *(p[1] for p in outer[:1]))
            return
