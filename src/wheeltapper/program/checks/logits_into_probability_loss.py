"""A loss that wants log-probabilities gets something else.

What it sees
------------
Raw outputs or probabilities given to `nll_loss`, `ctc_loss` or `kl_div`, or raw outputs given to
`binary_cross_entropy`.

Why it matters
--------------
The loss can be made as low as one likes by making the outputs large: it goes below zero and teaches nothing; or it is
undefined.

How it decides
--------------
What the loss is given is traced back to the output of a layer with nothing after it, or to a softmax without a
logarithm.

When it is wrong
----------------
If the layer's output is already normalised.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_raw_layer, produced
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "logits-into-probability-loss"
CAUSE: str | None = "objective-mismatch"
DECIDES = True

WANTS_LOGS = {"nll_loss", "ctc_loss", "kl_div"}


def check(code: Code) -> Iterator[Finding]:
    for loss in code.story.loss_calls:
        given = loss.arg("input", 0) or loss.arg("log_probs")
        ends = produced(given) if given is not None else []
        if not ends:
            continue
        raw = [e for e in ends if is_raw_layer(e)]
        if loss.name in WANTS_LOGS and len(raw) == len(ends):
            yield code.seen(
                ID, f"{loss.name} wants log-probabilities and gets the raw output of a layer.", _last(raw), loss
            )
            return
        if loss.name in WANTS_LOGS and all(e.op == "call" and e.name in ("softmax", "sigmoid") for e in ends):
            yield code.seen(ID, f"{loss.name} wants log-probabilities and gets probabilities.", ends[0], loss)
            return
        if loss.name == "binary_cross_entropy" and len(raw) == len(ends):
            yield code.seen(
                ID, "binary_cross_entropy wants probabilities and gets the raw output of a layer.", _last(raw), loss
            )
            return


def _last(values: list[Val]) -> Val:
    return values[0]
