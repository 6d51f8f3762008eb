"""Padding is part of the loss.

What it sees
------------
Targets that were padded to one length, and a loss that neither ignores the padding nor masks it.

Why it matters
--------------
The model is taught to predict padding. Short sequences make the loss look good.

How it decides
--------------
The targets come from a padding call (or a tokenizer that pads); the cross-entropy has no `ignore_index` that is the
padding, nothing in the targets is set to -100, and no mask is multiplied in.

When it is wrong
----------------
If padding is an end mark that should be learned.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "padding-in-loss"
CAUSE: str | None = None
DECIDES = True

IGNORED = -100


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.loss_calls:
        if loss.name not in ("cross_entropy", "nll_loss") or len(loss.args) < 2:
            continue
        pads = [v for v in made_of(loss.args[1]) if v.op == "call" and v.name in ("pad_sequence", "pad")]
        if not pads or _masks(loss.args[1]) or _masked(loss):
            continue
        filled = number(pads[0].arg("padding_value", 2) or pads[0].arg("value"))
        ignored = number(loss.kwargs.get("ignore_index")) if "ignore_index" in loss.kwargs else IGNORED
        if filled is not None and ignored is not None and filled != ignored:
            yield code.seen(
                ID,
                f"The targets are padded with {filled:g}, and the loss counts these places.",
                loss,
                pads[0],
                *_maker(code, loss),
            )
            return
    yield from _by_library(code)


def _maker(code: Code, loss: Val) -> list[Val]:
    """The module that the loss is, where it was made."""
    return [c for c in code.story.named("CrossEntropyLoss", "NLLLoss") if c.origin == loss.origin][:1]


def _masks(target: Val) -> bool:
    return any(number(v) == IGNORED for v in made_of(target)) or any(
        (
            v.op == "call"
            and v.name in ("setitem", "masked_fill", "masked_fill_", "where", "masked_select", "pack_padded_sequence")
        )
        or (v.op == "item" and v.args[1].op in ("cmp", "bin", "unary"))
        for v in made_of(target)
    )


def _masked(loss: Val) -> bool:
    """The loss of each place is kept, to be multiplied with a mask."""
    return loss.kwargs.get("reduction") is not None or "weight" in loss.kwargs


def _by_library(code: Code) -> Iterator[Finding]:
    for call in code.story.named("setitem"):
        if call.args[1].data != "labels" or _masks(call.args[2]):
            continue
        pads = call.args[0].kwargs.get("padding")
        ids = [
            v for v in made_of(call.args[2]) if v.op == "item" and v.data == "input_ids" and v.args[0] is call.args[0]
        ]
        if (
            pads is not None
            and pads.data not in (False, None)
            and ids
            and not code.story.named("DataCollatorForLanguageModeling")
        ):
            yield code.seen(ID, "The labels are the padded tokens themselves: padding is learned like text.", call)
            return
    for net in code.story.applications:
        labels = net.kwargs.get("labels")
        if labels is None or not code.story.in_training(net) or _masks(labels):
            continue
        given = net.kwargs.get("input_ids") or (net.args[1] if len(net.args) > 1 else None)
        tokens = [
            v
            for v in made_of(labels)
            if v.op in ("call", "net") and "padding" in v.kwargs and v.kwargs["padding"].data is not False
        ]
        if tokens and given is not None and any(v is t for t in tokens for v in made_of(given)):
            yield code.seen(
                ID, "The labels are the padded tokens themselves: padding is learned like text.", labels, net
            )
            return
