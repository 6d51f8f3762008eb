"""The targets are not the next tokens.

What it sees
------------
A language model whose targets are the tokens it was just given.

Why it matters
--------------
The model learns to copy its input: a loss near zero and nothing learned.

How it decides
--------------
The tokens that go into the embedding and the targets of the cross-entropy are cut from the same sequence; the
distance of their starts, cuts of the logits included, is 0. Inputs that were masked first are other values and are not
compared.

When it is wrong
----------------
If a layer in between, whose code is not seen, shifts its input.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.derive import ATTENDS, difference, is_attention, is_random, window
from wheeltapper.program.play.value import Val, made_of, plain
from wheeltapper.program.reading import Code

ID = "labels-not-shifted"
CAUSE: str | None = "causal-leak"
DECIDES = True

RECURS = {"LSTM", "GRU", "RNN", "LSTMCell", "GRUCell"}
AHEAD = {"cross_entropy", "nll_loss", "gather"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for _, loss in story.backwards:
        for value in made_of(loss):
            if value.op == "call" and value.name in AHEAD and len(value.args) > 1:
                found = shift_of(
                    value.args[0], value.args[2] if value.name == "gather" and len(value.args) > 2 else value.args[1]
                )
                if found is not None and found[0] == 0 and is_sequence_model(value.args[0]):
                    text = "The targets are the tokens that were just given, not the next ones."
                    yield code.seen(ID, text, found[2], found[1], value)
                    return


def is_sequence_model(logits: Val) -> bool:
    """Something on the way mixes the places of a sequence: attention or recurrence, or a model of a library."""
    return any(
        (
            v.op == "net"
            and v.args[0].op == "call"
            and (v.args[0].name in ATTENDS | RECURS or v.args[0].name == "from_pretrained")
        )
        or is_attention(v)
        for v in made_of(logits)
    )


def shift_of(logits: Val, target: Val) -> tuple[float, Val, Val] | None:
    """How far ahead of the tokens given the targets are: (distance, tokens given, targets); None if they are not of one sequence."""
    there = start_of(target)
    ahead = _logits_start(logits)
    for net in made_of(logits):
        if net.op != "net" or (len(net.args) < 2 and "input_ids" not in net.kwargs) or not _takes_tokens(net):
            continue
        for given in (*net.args[1:], *(v for k, v in net.kwargs.items() if k == "input_ids")):
            here = start_of(given)
            if here[0] is not there[0] or here[0].op in ("const", "free", "index") or is_random(here[0]):
                continue
            if any(v.op == "call" and v.name == "setitem" for v in (plain(target), plain(given))):
                continue
            apart = difference(there[1], here[1])
            if apart is not None:
                return apart - ahead, given, target
    return None


def _takes_tokens(net: Val) -> bool:
    module = net.args[0]
    return module.op == "call" and (
        module.name == "Embedding" or (module.name == "from_pretrained" and "LM" in module.origin)
    )


def start_of(value: Val) -> tuple[Val, Val | None]:
    """The sequence a value is cut from, and where the cut starts; cuts of cuts add up."""
    value = plain(value)
    start: Val | None = None
    for _ in range(6):
        cut = window(value)
        if cut is None:
            break
        if cut[1] is not None:
            start = cut[1] if start is None else Val("bin", "Add", (start, cut[1]))
        value = cut[0]
    return value, start


def _logits_start(value: Val) -> float:
    """Where a cut of the logits along the sequence starts."""
    for _ in range(12):
        value = plain(value)
        if value.op == "call" and value.name in ("log_softmax", "softmax") and value.args:
            value = value.args[0]
        elif value.op == "item" and (cut := window(value)) is not None:
            begin = difference(cut[1], None)
            return begin if begin is not None else 0.0
        else:
            break
    return 0.0
