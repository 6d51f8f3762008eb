"""What belongs to one sample is normalised over the batch.

What it sees
------------
Embeddings divided by their length along the batch, the norm of a gradient taken along the batch.

Why it matters
--------------
The vectors are then no unit vectors and their products no similarities; a penalty on a gradient holds for no single
point.

How it decides
--------------
`normalize(..., dim=0)` of what a network makes of a batch, followed by a product with its transpose; `norm(dim=0)` of
a gradient taken to the inputs.

When it is wrong
----------------
If the first axis is not the batch.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "rows-normalised-apart"
CAUSE: str | None = "wrong-axis"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        parts = list(made_of(loss))
        for value in parts:
            if _is_product(value) and (wrong := _apart(value)) is not None:
                yield code.seen(ID, "The embeddings are normalised along the batch, not each by itself.", wrong, value)
                return
            if value.op == "call" and value.name == "norm" and _axis(value, (1, 2)) == 0 and value.args and _is_gradient(value.args[0]):
                yield code.seen(ID, "The length of the gradient is taken along the batch, not for each sample.", value)
                return


def _is_product(value: Val) -> bool:
    return (value.op == "bin" and value.name == "MatMult") or (value.op == "call" and value.name in ("matmul", "mm"))


def _apart(product: Val) -> Val | None:
    for side in product.args:
        for one in made_of(side, deep=False, stop=lambda v: v.op == "net"):
            if one.op == "call" and one.name == "normalize" and _axis(one, (2,)) == 0 and any(v.op == "net" for v in made_of(one)):
                return one
    return None


def _axis(call: Val, places: tuple[int, ...]) -> float | None:
    given = call.kwargs.get("dim") or call.kwargs.get("axis")
    if given is not None:
        return number(given)
    return next((number(call.args[p]) for p in reversed(places) if len(call.args) > p and p == places[-1]), None)


def _is_gradient(value: Val) -> bool:
    """What autograd gave for the inputs, not turned or flattened."""
    for _ in range(6):
        if value.op == "item":
            value = value.args[0]
        else:
            break
    return value.op == "call" and value.name == "grad" and "autograd" in value.origin
