"""The entropy of the policy is made smaller.

What it sees
------------
The entropy of the policy's distribution added to a loss that is minimised.

Why it matters
--------------
The bonus for exploring becomes a fine: the policy turns deterministic within a few updates and stops trying.

How it decides
--------------
The loss has a policy-gradient term (log-probabilities with gradients) and the entropy of a distribution, with
gradients, with a plus.

When it is wrong
----------------
If a negative weight is given for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_log_prob
from wheeltapper.program.play.signs import signs_in
from wheeltapper.program.play.story import with_gradient
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

ID = "entropy-punished"
CAUSE: str | None = "wrong-loss-sign"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        parts = list(with_gradient(loss))
        if not any(is_log_prob(v) for v in parts):
            continue
        for value in parts:
            if value.op != "call" or value.name != "entropy" or not any(v.op == "net" for v in made_of(value)):
                continue
            if signs_in(loss, value) == {1}:
                text = "The entropy of the policy is added to the loss: it is made smaller, not larger."
                yield code.seen(ID, text, loss, value)
                return
