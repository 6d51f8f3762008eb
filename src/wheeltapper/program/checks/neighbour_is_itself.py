"""A search for the nearest finds itself.

What it sees
------------
The similarities of a set with itself (`e @ e.t()`, `cdist(e, e)`), of which the nearest are taken, and whose diagonal
nothing hides.

Why it matters
--------------
Each query is its own nearest neighbour: the score of retrieval is perfect whatever the network does.

How it decides
--------------
Both sides of the product are the same embeddings, the best of each row is asked for (argmax, argmin, the first of
topk), and between the two nothing fills the diagonal, subtracts an identity or drops the first hit.

When it is wrong
----------------
If the best of each row is used for something else than a score.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "neighbour-is-itself"
CAUSE: str | None = "eval-broken"
DECIDES = True

HIDES = {"fill_diagonal_", "fill_diagonal", "eye", "diag", "masked_fill", "masked_fill_", "setitem", "fill_diag", "scatter_", "where", "diagonal"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.named("argmax", "argmin", "topk"):
        if not call.args or not call.no_grad:
            continue
        if call.name == "topk" and number(call.arg("k", 1)) != 1:
            continue
        near = list(made_of(call.args[0], deep=False, stop=_is_product))
        product = next((v for v in near if _is_product(v)), None)
        if product is None or any(v.op == "call" and v.name in HIDES for v in near) or not _is_learnt(product):
            continue
        later = [v for c in story.calls for v in c.args[:1] if v is product or plain(v) is product]
        if any(c.name in HIDES and c.args and any(c.args[0] is v for v in (product, *later)) for c in story.calls):
            continue
        yield code.seen(ID, "Each row is compared with itself as well: it is its own nearest.", call, product)
        return


def _is_product(value: Val) -> bool:
    """`e @ e.t()`, `cdist(e, e)`."""
    if (value.op == "bin" and value.name == "MatMult") or (value.op == "call" and value.name in ("matmul", "mm", "cdist") and len(value.args) == 2):
        a, b = value.args
    else:
        return False
    turned = b.op == "attr" and b.name == "T" and b.args
    return plain(a) is plain(b.args[0] if turned else b)


def _is_learnt(product: Val) -> bool:
    return any(v.op == "net" for v in made_of(product))
