"""The sampler takes the output for noise, and the network learned something else.

What it sees
------------
A diffusion model trained to give back the clean data, whose sampler subtracts the output as if it were the noise.

Why it matters
--------------
The loss falls as it should and the samples get worse: each half is right and they do not belong together.

How it decides
--------------
The target of the loss is the data under the noise, and the sampler subtracts the output times a rate over a square
root from its input.

When it is wrong
----------------
If the sampler turns the output into noise first.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "sampler-wants-noise"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        net = next((v for v in made_of(loss.args[0], deep=False) if v.op == "net" and len(v.args) > 2), None)
        if net is None or len(loss.args) < 2:
            continue
        target = plain(loss.args[1])
        inside = list(made_of(net.args[1]))
        noisy = any(is_random(v) and v.name.startswith("randn") for v in inside)
        if not noisy or is_random(target) or not any(v is target for v in inside):
            continue
        taken = next(
            (
                one
                for call in story.applications
                if call.no_grad and len(call.args) > 1
                for one in _subtracted(code, call)
            ),
            None,
        )
        if taken is not None:
            text = "The network learns the clean data, and the sampler subtracts its output as if it were the noise."
            yield code.seen(ID, text, loss, taken, grade="suspected")
            return


def _subtracted(code: Code, call: Val) -> Iterator[Val]:
    """`x - beta / sqrt(1 - abar) * net(x, t)`"""
    for made in code.story.player.subtractions:
        left, right = made.args
        if any(v is call for v in made_of(right, deep=False)) and plain(left) is plain(call.args[1]):
            rates = [
                v for v in made_of(right, deep=False, stop=lambda v: v.op == "net") if v.op == "bin" and v.name == "Div"
            ]
            if any(v.op == "call" and v.name == "sqrt" for r in rates for v in made_of(r.args[1], deep=False)):
                yield made
