"""The accelerator's accumulation is done twice, or not at all.

What it sees
------------
An Accelerator that is told to accumulate: the loss is divided by hand as well, or no step is made under
`accumulate()`.

Why it matters
--------------
accelerator.backward() divides by the number already, so gradients are too small by it; without accumulate() every
micro-batch makes a step.

How it decides
--------------
`gradient_accumulation_steps` of the Accelerator against what `backward` is given, and whether `accumulate` is entered
anywhere.

When it is wrong
----------------
If another Accelerator is used for that.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, number
from wheeltapper.program.reading import Code

ID = "accelerator-accumulates"
CAUSE: str | None = "accumulation-not-done"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    story = code.story
    made = [c for c in story.named("Accelerator") if (n := number(c.kwargs.get("gradient_accumulation_steps"))) is not None and n > 1]
    if not made or len(story.named("Accelerator")) != 1:
        return
    several = number(made[0].kwargs["gradient_accumulation_steps"])
    for call in story.named("backward"):
        loss = call.args[1] if len(call.args) > 1 else None
        if loss is not None and loss.op == "bin" and loss.name == "Div" and number(loss.args[1]) == several:
            yield code.seen(ID, f"The loss is divided by {several:g}, and accelerator.backward() divides it again.", loss, call, made[0])
            return
    used = "accumulate" in code.program.calls or any("sync_gradients" in _tests(c) or "no_sync" in code.program.calls for c in story.named("zero_grad"))
    steps = [c for c in story.named("backward") if len(c.args) > 1 and c.args[0] is made[0]]
    if steps and "accumulate" not in code.program.calls and not used:
        yield code.seen(ID, "The accelerator is told to accumulate, and nothing runs under accumulate(): every micro-batch makes a step.", steps[0], made[0])


def _tests(call: Val) -> set[str]:
    return {g.test.name for g in call.guards}
