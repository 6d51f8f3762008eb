"""The spread of the code is its variance.

What it sees
------------
`mu + eps * exp(logvar)` in a variational model whose KL term takes `logvar` for the logarithm of the variance.

Why it matters
--------------
The noise is the square of what the prior term believes: reconstruction and prior contradict each other.

How it decides
--------------
The factor beside fresh noise is `exp` of the very value that stands in the KL term, without a half.

When it is wrong
----------------
If the network's second output is the logarithm of the spread and the KL term says so too.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.kl_weight_extreme import divergence
from wheeltapper.program.play.derive import is_random, produced
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "deviation-not-halved"
CAUSE: str | None = None
DECIDES = True

LOGARITHM = re.compile(r"^(\w+_)?log_?(std|sigma|var|scale)\w*$", re.I)


def check(code: Code) -> Iterator[Finding]:
    yield from _as_it_is(code)
    yield from _in_sample(code)


def _in_sample(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        kl = divergence(loss)
        if kl is None:
            continue
        logvar = kl.args[1].args[0]
        for value in made_of(loss):
            if value.op != "bin" or value.name != "Mult":
                continue
            noisy = [any(is_random(v) for v in made_of(a, deep=False)) for a in value.args]
            other = [a for a, n in zip(value.args, noisy, strict=True) if not n or a.name == "exp"]
            if any(noisy) and any(_same(o, logvar) for o in other if o.op != "call" or o.name != "exp"):
                text = "The noise is multiplied by the log-variance itself: it must be the exponential of half of it."
                yield code.seen(ID, text, value)
                return
            if any(noisy) and any(
                o.op == "call" and o.name == "exp" and o.args and _same(o.args[0], logvar) for o in other
            ):
                yield code.seen(
                    ID,
                    "The noise is multiplied by the variance, not by the spread: the half is missing in the exponent.",
                    _exp(other),
                    value,
                )
                return


def _as_it_is(code: Code) -> Iterator[Finding]:
    """The logarithm of a spread where the spread is wanted: `eps * logvar`, `Normal(mean, log_std)`."""
    for call in code.story.named("Normal", "MultivariateNormal"):
        scale = call.arg("scale", 1)
        node = call.node.args[1] if isinstance(call.node, ast.Call) and len(call.node.args) > 1 else None
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        if (
            scale is not None
            and LOGARITHM.match(name)
            and not any(v.op == "call" and v.name in ("exp", "softplus") for v in made_of(scale, deep=False))
        ):
            yield code.seen(ID, f"`{name}` is given as the spread itself: the exponential is missing.", call)
            return


def _same(a: Val, b: Val) -> bool:
    return a is b or {id(v) for v in produced(a)} == {id(v) for v in produced(b)}


def _exp(values: list[Val]) -> Val:
    return next(v for v in values if v.op == "call" and v.name == "exp")
