"""The targets are not the next tokens but others.

What it sees
------------
A language model whose targets lie two or more tokens ahead, or behind; labels that are shifted by hand for a model that
shifts them once more.

Why it matters
--------------
The model learns to skip. What it generates one token at a time is nonsense, and its loss is compared with others in vain.

How it decides
--------------
The tokens that go into the embedding and the targets of the cross-entropy are cut from the same sequence; the distance
of their starts, cuts of the logits included, is a number and neither 0 nor 1. Models of transformers that are given
`labels` shift by themselves: there the distance should be 0.

When it is wrong
----------------
Models that predict several tokens ahead on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.labels_not_shifted import AHEAD, is_sequence_model, shift_of, start_of
from wheeltapper.program.play.derive import difference
from wheeltapper.program.play.value import Val, made_of
from wheeltapper.program.reading import Code

ID = "targets-skip"
CAUSE: str | None = "target-misaligned"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for _, loss in code.story.backwards:
        for value in made_of(loss):
            if value.op == "call" and value.name in AHEAD and len(value.args) > 1:
                target = value.args[2] if value.name == "gather" and len(value.args) > 2 else value.args[1]
                found = shift_of(value.args[0], target)
                if found is not None and found[0] not in (0, 1) and is_sequence_model(value.args[0]):
                    text = f"The targets are {found[0]:g} tokens ahead, not the next ones."
                    yield code.seen(ID, text, found[2], found[1], value)
                    return
            if value.op == "net" and "labels" in value.kwargs and (told := _library(code, value)) is not None:
                yield told
                return


def _library(code: Code, net: Val) -> Finding | None:
    """A model of transformers shifts by itself: tokens and labels must start together."""
    module = net.args[0]
    given = net.kwargs.get("input_ids") or (net.args[1] if len(net.args) > 1 else None)
    if module.op != "call" or "CausalLM" not in module.origin or given is None:
        return None
    here, there = start_of(given), start_of(net.kwargs["labels"])
    if here[0] is not there[0]:
        return None
    apart = difference(there[1], here[1])
    if apart is None or apart == 0:
        return None
    return code.seen(
        ID, "The labels are shifted by hand, and the model shifts them once more.", net.kwargs["labels"], net
    )
