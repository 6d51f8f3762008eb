"""A part of the loss is computed and not used.

What it sees
------------
A network that routes tokens to experts and returns a balancing term, which never goes into the loss; or a router
without any such term.

Why it matters
--------------
The router sends everything to a few experts: the others never learn.

How it decides
--------------
A `topk` of a softmax chooses among experts inside the network; nothing in the loss is made of the router's
probabilities except through the experts' outputs.

When it is wrong
----------------
With biases that balance without a loss.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "aux-loss-unused"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        routers = [
            v
            for v in made_of(loss)
            if v.op == "call"
            and v.name in ("topk", "top_k")
            and v.args
            and _probabilities(v.args[0])
            and "forward" in v.inside
        ]
        if not routers:
            continue
        terms = story.terms(loss)
        extra = [
            t for t in terms if not (t.value.op == "call" and t.value.name in ("cross_entropy", "mse_loss", "nll_loss"))
        ]
        unused = [c for c in story.applications if story.in_training(c) and c.data is not None and c.data.op == "tuple"]
        if (
            not extra
            and len(terms) == 1
            and not any(
                c.name in ("register_buffer",) and "bias" in str(c.args[1].data) for c in story.calls if len(c.args) > 1
            )
        ):
            told = (
                "The network returns a balancing term for its router, and the loss does not use it."
                if unused
                else "Nothing in the loss keeps the router from sending everything to a few experts."
            )
            yield code.seen(
                ID,
                told,
                story.backwards[0][1] if story.backwards[0][1].node is not None else routers[0],
                routers[0],
                grade="is" if unused else "suspected",
            )
            return


def _probabilities(value: Val) -> bool:
    return any(v.op == "call" and v.name == "softmax" for v in made_of(value, deep=False)) or any(
        v.op == "net" and v.args[0].name == "Linear" for v in (value,)
    )
