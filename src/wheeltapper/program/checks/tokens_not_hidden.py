"""The tokens that are asked for are not hidden.

What it sees
------------
A masked language model whose targets are chosen by a mask while the network is given the tokens as they are.

Why it matters
--------------
The answer stands in the input at its own place: the network learns to copy, and nothing else.

How it decides
--------------
The targets are the tokens with an ignored number written at the places that a random mask leaves, and the input is the
same tensor with nothing written into it.

When it is wrong
----------------
If the tokens are hidden inside the network.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.loss_on_the_unmasked import base_of, written
from wheeltapper.program.play.value import made_of, number, plain
from wheeltapper.program.reading import Code

ID = "tokens-not-hidden"
CAUSE: str | None = "target-leak"
DECIDES = True

DRAWS = ("rand", "rand_like", "bernoulli", "randint", "random")


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        nets = [v for v in made_of(loss.args[0], deep=False) if v.op == "net" and len(v.args) > 1]
        left = (number(loss.kwargs.get("ignore_index")), -100)
        ignored = [w for w in written(loss.args[1]) if (put := number(w.args[2])) is not None and put in left]
        if not nets or not ignored or written(nets[0].args[1]):
            continue
        drawn = any(v.op == "call" and v.name in DRAWS for v in made_of(ignored[0].args[1]))
        if drawn and base_of(loss.args[1]) is plain(nets[0].args[1]):
            text = "The targets are chosen by a mask, and the network is given the tokens as they are."
            yield code.seen(ID, text, nets[0], ignored[0], loss)
            return
