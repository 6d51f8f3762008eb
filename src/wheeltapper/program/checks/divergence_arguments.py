"""The arguments of a divergence are of the wrong kind.

What it sees
------------
`kl_div` that is given logarithms where it wants probabilities, or probabilities where it wants logarithms.

Why it matters
--------------
The number that comes out is no divergence: it has no minimum where the two agree.

How it decides
--------------
The first argument must be a logarithm (`log_softmax`), the second a probability, or a logarithm with
`log_target=True`. What each comes straight from is looked at.

When it is wrong
----------------
If the logarithm is taken back in between; that is followed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "divergence-arguments"
CAUSE: str | None = "objective-mismatch"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("kl_div"):
        if len(call.args) < 2:
            continue
        logs = call.kwargs.get("log_target")
        told = logs is not None and logs.data is not False
        if not told and _is(call.args[1], "log_softmax", "logsoftmax", "logsigmoid"):
            yield code.seen(ID, "The target of kl_div is a logarithm, and log_target is not set.", call)
            return
        if told and logs is not None and logs.data is True and _is(call.args[1], "softmax", "sigmoid"):
            yield code.seen(ID, "log_target is set, and the target of kl_div is a probability.", call)
            return
        if _is(call.args[0], "softmax", "sigmoid"):
            yield code.seen(ID, "The first argument of kl_div is a probability: it must be a logarithm.", call)
            return


def _is(value: Val, *names: str) -> bool:
    found = produced(value)
    return bool(found) and all(v.op == "call" and v.name in names for v in found)
