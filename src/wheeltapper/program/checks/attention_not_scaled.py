"""Attention without the square root.

What it sees
------------
`softmax(q @ k.T)` without a division by the square root of the width, or a learned factor.

Why it matters
--------------
The products grow with the width: the softmax is nearly one-hot from the start, its gradient nearly zero.

How it decides
--------------
The scores of a softmax are a product of two projections, and nothing on the way divides or multiplies them; neither
side is normalised or scaled before.

When it is wrong
----------------
If the weights are initialised to make up for it (T5).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_attention, is_raw_layer, produced
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "attention-not-scaled"
CAUSE: str | None = "attention-logit-growth"
DECIDES = True


NORMS = {"normalize", "norm", "rsqrt", "sqrt", "LayerNorm", "RMSNorm"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("softmax"):
        if not call.args or not is_attention(call) or "forward" not in call.inside:
            continue
        product = _product(call.args[0])
        if product is None or not all(_is_projected(a) for a in product.args[-2:]):
            continue
        between = list(made_of(call.args[0], deep=False, stop=lambda v, p=product: v is p or _ends(v)))  # type: ignore[misc]
        sides = [v for a in product.args[-2:] for v in made_of(a, deep=False, stop=_ends)]
        raised = next((v for v in between if _grows(v)), None)
        if raised is not None:
            yield code.seen(ID, "The scores of attention are multiplied by the square root of the width, not divided.", raised, call)
            return
        if any(_scales(v) for v in (*between, *sides) if v is not product):
            continue
        yield code.seen(
            ID,
            "The scores of attention are not divided by the square root of the width.",
            product,
            call,
            grade="suspected",
        )
        return


def _is_projected(value: Val) -> bool:
    """Straight from a linear layer, as queries and keys are; the state of a recurrent network is bounded by itself."""
    made = produced(value)
    return bool(made) and all(is_raw_layer(v) for v in made)


def _product(value: Val) -> Val | None:
    for one in made_of(value, deep=False, stop=lambda v: v.op == "net"):
        if (one.op == "bin" and one.name == "MatMult") or (
            one.op == "call" and one.name in ("matmul", "bmm", "einsum")
        ):
            return one
    return None


def _ends(value: Val) -> bool:
    return (
        value.op == "net"
        or (value.op == "attr" and value.name == "shape")
        or (value.op == "call" and value.name == "size")
    )


def _grows(value: Val) -> bool:
    """A product with `sqrt(width)` or `width ** 0.5`."""
    if value.op != "bin" or value.name != "Mult":
        return False
    roots = [a for a in value.args if (a.op == "call" and a.name == "sqrt") or (a.op == "bin" and a.name == "Pow" and number(a.args[1]) == 0.5)]
    return bool(roots)


def _scales(value: Val) -> bool:
    if value.op == "bin":
        return value.name in ("Div", "Mult")
    return (value.op == "call" and value.name in NORMS | {"mul", "div", "mul_", "div_"}) or (
        value.op == "net" and value.args[0].name in NORMS
    )
