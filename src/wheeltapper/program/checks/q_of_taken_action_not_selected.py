"""The value of the best action is trained, not that of the one taken.

What it sees
------------
A TD target compared with `q(s).max(...)` instead of the value of the action that was taken.

Why it matters
--------------
What was earned is credited to whichever action looks best: actions get no credit of their own.

How it decides
--------------
The prediction of a loss is the maximum over the outputs of the trained network, and the target is a reward plus a
discounted value.

When it is wrong
----------------
In value iteration over all actions.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import bootstrap
from wheeltapper.program.play.story import NUMBER_LOSSES
from wheeltapper.program.play.value import Val, plain
from wheeltapper.program.reading import Code

ID = "q-of-taken-action-not-selected"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in NUMBER_LOSSES or len(loss.args) < 2 or not list(bootstrap(loss.args[1])):
            continue
        best = _largest(loss.args[0])
        if best is not None and best.args[0].op == "net" and story.is_trained(best.args[0].args[0]):
            text = "The prediction is the largest output, not that of the action that was taken."
            yield code.seen(ID, text, best, loss)
            return


def _largest(value: Val) -> Val | None:
    value = plain(value)
    if value.op in ("attr", "item") and value.args and (value.name == "values" or value.data == 0):
        value = plain(value.args[0])
    return value if value.op == "call" and value.name in ("max", "amax") and value.args else None
