"""The temperature of distillation is not the same on both sides.

What it sees
------------
Student and teacher divided by different temperatures (or only one divided); or the soft loss not multiplied by the
square of the temperature.

Why it matters
--------------
With different temperatures the student is trained towards a distribution that the teacher does not mean. Without the
square the soft loss is weaker by that factor than its weight says.

How it decides
--------------
The two arguments of `kl_div` are a log-softmax and a softmax; the numbers that their logits are divided by are
compared, and the factor of the term.

When it is wrong
----------------
If the weight of the term was chosen without the square.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import produced
from wheeltapper.program.play.value import Val, number
from wheeltapper.program.reading import Code

ID = "temperature-mismatch"
CAUSE: str | None = None
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        for term in story.terms(loss):
            value = term.value
            if value.op != "call" or value.name != "kl_div" or len(value.args) < 2:
                continue
            a, b = (_temperature(v) for v in value.args[:2])
            if a is None or b is None:
                continue
            if a != b:
                yield code.seen(
                    ID, f"One side is divided by {a:g} and the other by {b:g}.", value, *produced(value.args[1])[:1]
                )
                return
            if a > 1.5 and term.factor < 0.9 * a * a * 0.05:
                yield code.seen(
                    ID,
                    f"The soft loss has a weight of {term.factor:g} at a temperature of {a:g}: the factor {a * a:g} is missing.",
                    value,
                    severity="watch",
                    grade="suspected",
                )
                return
            if a > 1.5 and term.factor <= 1.0:
                yield code.seen(
                    ID,
                    f"The soft loss is not multiplied by the square of the temperature ({a * a:g}).",
                    value,
                    severity="watch",
                    grade="suspected",
                )
                return


def _temperature(value: Val) -> float | None:
    ends = produced(value)
    if len(ends) != 1 or ends[0].op != "call" or ends[0].name not in ("softmax", "log_softmax") or not ends[0].args:
        return None
    inner = ends[0].args[0]
    if inner.op == "bin" and inner.name == "Div":
        return number(inner.args[1])
    return 1.0
