"""The reference model is the model that is trained.

What it sees
------------
A reference (or teacher, or target) that is not a copy of the trained network but the network itself.

Why it matters
--------------
The margin against the reference is always zero, or the target moves with the model.

How it decides
--------------
`ref_model` given to a trainer is the same object as `model`; or the same network is applied to the same input with
and without gradients inside one difference of a pairwise loss.

When it is wrong
----------------
With adapters that are switched off for the reference.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import made_of
from wheeltapper.program.reading import Code

ID = "reference-is-policy"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for call in story.calls:
        model, reference = call.kwargs.get("model"), call.kwargs.get("ref_model")
        if model is not None and reference is model:
            yield code.seen(ID, "The reference model is the very model that is trained.", reference, call)
            return
    for _, loss in story.backwards:
        for value in made_of(loss):
            if value.op != "call" or value.name != "logsigmoid":
                continue
            nets = [v for v in made_of(value) if v.op == "net" and v.order >= 0 and "forward" not in v.inside]
            quiet = [n for n in nets if n.no_grad]
            live = [n for n in nets if not n.no_grad]
            if quiet and live and all(q.args[0] is live[0].args[0] for q in quiet) and not _switched(code):
                yield code.seen(
                    ID, "The reference in the loss is the network that is trained, not a copy of it.", quiet[0], live[0]
                )
                return


def _switched(code: Code) -> bool:
    return any(c.name in ("disable_adapter", "set_adapter", "disable_adapters") for c in code.story.calls)
