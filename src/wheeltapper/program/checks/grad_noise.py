"""Noise is added to the gradients.

What it sees
------------
Random numbers that are added to `.grad` between the backward pass and the step, with a size that does not fade.

Why it matters
--------------
The steps become a random walk. What the gradient says is lost as soon as it is smaller than the noise, which it always
is near the end.

How it decides
--------------
In a loop that trains, a parameter's `.grad` is written with a random tensor times a known number (or no number at all)
in it; nothing that changes from step to step is a factor of it.

When it is wrong
----------------
Differentially private training does it on purpose: with a library for that, or with gradients clipped per sample, it
is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import is_random
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "grad-noise"
CAUSE: str | None = None
DECIDES = True

WRITES = {"augment", "setattr", "add_", "copy_", "mul_"}
PRIVATE = {"PrivacyEngine", "make_private", "make_private_with_epsilon", "compute_epsilon", "per_sample_grad", "vmap"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    if story.named(*PRIVATE) or code.calls_any(*PRIVATE):
        return
    for call in story.calls:
        if call.name not in WRITES or not story.in_training(call) or len(call.args) < 2:
            continue
        if not _is_gradient(call):
            continue
        noise = next((v for a in call.args[1:] for v in made_of(a, deep=False) if is_random(v)), None)
        if noise is not None and not any(v.op == "index" for a in call.args[1:] for v in made_of(a, deep=False)):
            yield code.seen(ID, "Noise is added to the gradients at every step, and it does not fade.", call, noise)
            return


def _is_gradient(call: Val) -> bool:
    if call.name == "setattr":
        return bool(call.args[1].data == "grad")
    return any(v.op == "attr" and v.name == "grad" for v in (call.args[0], *call.args[0].args[:1]))
