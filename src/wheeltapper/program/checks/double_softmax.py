"""Softmax is applied before a loss that applies it again.

What it sees
------------
The output of a softmax given to `cross_entropy` (or of a sigmoid to it, or to `binary_cross_entropy_with_logits`).

Why it matters
--------------
The loss cannot fall below ln(1 + (C - 1)/e): 1.461 for 10 classes, 5.91 for 1000 (of ln C = 6.91). Training looks
stuck at that number while accuracy still creeps up.

How it decides
--------------
What the loss is given is traced back, through changes of shape, through the networks' own forward and through the
last layer of a Sequential: it is a softmax or a sigmoid on every way. A log-softmax is harmless (applying it twice
changes nothing) and is not reported.

When it is wrong
----------------
If `forward` returns the softmax only outside training.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.output_does_not_fit_the_loss import last_layer
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.value import Val, text_of
from wheeltapper.program.reading import Code

ID = "double-softmax"
CAUSE: str | None = "double-softmax"
DECIDES = True

AGAIN = {"cross_entropy": ("softmax", "sigmoid"), "binary_cross_entropy_with_logits": ("sigmoid", "softmax")}


def check(code: Code) -> Iterator[Finding]:
    for loss in _losses(code):
        given = loss.arg("input", 0)
        ends = produced(given) if given is not None else []
        if ends and all(e.op == "call" and e.name in AGAIN[loss.name] for e in ends):
            yield code.seen(ID, f"{ends[0].name} is applied before {loss.name}, which applies it again.", ends[0], loss)
            return
    yield from _by_keras(code)


def _by_keras(code: Code) -> Iterator[Finding]:
    """`Dense(10, activation="softmax")` and a loss with `from_logits=True`."""
    for call in code.story.named("compile"):
        loss = call.kwargs.get("loss")
        logits = loss.kwargs.get("from_logits") if loss is not None else None
        last = last_layer(call.args[0]) if call.args else None
        activation = text_of(last.kwargs.get("activation")) if last is not None else None
        if loss is None or last is None or logits is None or logits.data is not True:
            continue
        if activation in ("softmax", "sigmoid"):
            text = f"The loss takes logits, and the last layer has a {activation}: it is applied twice."
            yield code.seen(ID, text, loss, last, call)
            return


def _losses(code: Code) -> list[Val]:
    """Those that a backward pass starts from; where it starts in code that is not seen, all of them."""
    used = [c for c in code.story.loss_calls if c.name in AGAIN]
    every = [c for c in code.story.named(*AGAIN) if not c.no_grad]
    return used or every
