"""The likelihood of the target is made smaller.

What it sees
------------
A cross-entropy written out, `(target * log(prediction)).sum()`, without its minus.

Why it matters
--------------
The network learns to give the right answer the least probability.

How it decides
--------------
One factor of a product is a target without a gradient (a softmax, one-hot rows), the other the logarithm of the
network's probabilities; the product goes into the loss with a plus.

When it is wrong
----------------
If the other network is to be pushed away on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.signs import is_layer, reached, signs_in
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

LOGS = {"log", "log_softmax", "logsigmoid"}
SHARES = {"softmax", "one_hot", "sigmoid", "eye"}

ID = "likelihood-made-smaller"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            if value.op == "bin" and value.name == "Mult" and _is_likelihood(value) and signs_in(loss, value) == {1}:
                yield code.seen(ID, "The logarithm of the probability of the target goes into the loss with a plus.", value, loss)
                return


def _is_likelihood(value: Val) -> bool:
    for target, log in (value.args, tuple(reversed(value.args))):
        learns = any(is_layer(v) for v in reached(log))
        logs = log.op == "call" and log.name in LOGS and (log.name != "log" or any(v.op == "call" and v.name == "softmax" for v in made_of(log)))
        still = not any(is_layer(v) or v.name == "Parameter" for v in reached(target))
        if learns and logs and still and any(v.op == "call" and v.name in SHARES for v in made_of(target)) and not _is_ratio(target):
            return True
    return False


def _is_ratio(value: Val) -> bool:
    return value.op == "bin" and value.name in ("Sub", "Div")
