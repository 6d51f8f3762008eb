"""Each sample is its own strongest rival.

What it sees
------------
A contrastive loss over all pairs of one batch in which a sample's similarity with itself is not taken out.

Why it matters
--------------
Every row has its largest entry on the diagonal, which is never the target: the loss cannot fall much.

How it decides
--------------
The scores of the cross-entropy are a product of a matrix with its own transpose, and nothing is filled, masked or
picked in them before the loss.

When it is wrong
----------------
If the targets are the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "pairs-with-themselves"
CAUSE: str | None = None
DECIDES = True

TAKES_OUT = {
    "fill_diagonal_",
    "masked_fill",
    "masked_fill_",
    "eye",
    "where",
    "masked_select",
    "diagonal",
    "setitem",
    "triu",
    "tril",
    "scatter_",
    "scatter",
}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        if loss.name != "cross_entropy" or len(loss.args) < 2:
            continue
        way = list(made_of(loss.args[0], deep=False, stop=lambda v: v.op == "net"))
        own = [v for v in way if _with_itself(v)]
        if (
            own
            and not any(
                (v.op == "call" and v.name in TAKES_OUT) or (v.op == "item" and v.args[1].op in ("unary", "cmp"))
                for v in way
            )
            and not _diagonal(loss.args[1])
        ):
            yield code.seen(ID, "The similarity of each sample with itself stays among the rivals.", own[0], loss)
            return


def _with_itself(value: Val) -> bool:
    if (
        not ((value.op == "bin" and value.name == "MatMult") or (value.op == "call" and value.name in ("matmul", "mm")))
        or len(value.args) < 2
    ):
        return False
    a, b = value.args[-2:]
    turned = (
        b.args[0]
        if b.op == "attr" and b.name in ("T", "mT")
        else b.args[0]
        if b.op == "call" and b.name in ("t", "transpose") and b.args
        else None
    )
    return turned is not None and plain(turned) is plain(a)


def _diagonal(target: Val) -> bool:
    target = plain(target)
    return target.op == "call" and target.name == "arange"
