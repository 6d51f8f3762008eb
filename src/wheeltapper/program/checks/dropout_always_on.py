"""Dropout that no evaluation turns off.

What it sees
------------
`F.dropout(x, p)` in a network, without `training=self.training`.

Why it matters
--------------
The function drops units unless it is told not to; `model.eval()` does not reach it. Every evaluation is made with
noise.

How it decides
--------------
The call lies in the forward of a network that is trained and evaluated, and its argument `training` is missing or
True.

When it is wrong
----------------
If the noise at evaluation is wanted (Monte Carlo dropout).
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "dropout-always-on"
CAUSE: str | None = "eval-in-train-mode"
DECIDES = True


NAMES = ("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_dropout")


def check(code: Code) -> Iterator[Finding]:
    judged = any(c.no_grad for c in code.story.applications)
    for call in code.story.named(*NAMES):
        if "forward" in call.inside and call.origin.startswith("torch.nn.functional") and _always(call):
            text = "F.dropout is not told whether the network is in training: it drops units at evaluation too."
            yield code.seen(ID, text, call, grade="is" if judged else "suspected")
            return


def _always(call: Val) -> bool:
    told = call.arg("training", 2)
    return told is None or (told.op == "const" and told.data is True)
