"""The advantage lets gradients through.

What it sees
------------
`log_prob(action) * advantage` where the advantage holds the output of a network that is being trained, not detached.

Why it matters
--------------
The policy's loss also pushes the value network, in the direction that makes the loss small: values drift away from
the returns.

How it decides
--------------
The factors of the product are followed as far as gradients go back: a trained network lies in the factor beside the
log-probability.

When it is wrong
----------------
If that gradient into the value network is meant.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_log_prob, learns_through
from wheeltapper.program.play.story import with_gradient
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "advantage-not-detached"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call, loss in story.backwards:
        for value in with_gradient(loss):
            if value.op != "bin" or value.name != "Mult":
                continue
            logs = [_is_logs(a) for a in value.args]
            if logs.count(True) != 1:
                continue
            other = value.args[logs.index(False)]
            nets = learns_through(story, other)
            if nets and _is_difference(other):
                yield code.seen(
                    ID,
                    "The advantage beside the log-probability is not detached: the policy's loss trains the value network too.",
                    value,
                    nets[0],
                    call,
                )
                return


def _is_logs(value: Val) -> bool:
    """A log-probability, a sum or mean of such, or the ratio of two policies."""
    while value.op == "call" and value.name in ("sum", "mean", "squeeze", "stack", "exp") and value.args:
        value = value.args[0]
    if value.op == "bin" and value.name == "Sub":
        return is_log_prob(value.args[0])
    if value.op in ("phi", "list") and (several := value.args or tuple(value.items or ())):
        return all(is_log_prob(v) for v in several)
    return is_log_prob(value)


def _is_difference(value: Val) -> bool:
    return any(v.op == "bin" and v.name == "Sub" for v in made_of(value))
