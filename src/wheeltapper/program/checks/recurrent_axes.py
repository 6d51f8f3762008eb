"""A recurrent layer reads the wrong axis.

What it sees
------------
A recurrent layer without `batch_first=True` that is given batches from a loader, of which the last step is taken
along the second axis; or the first step of its output taken as a summary.

Why it matters
--------------
The layer takes the batch for time: states run from sample to sample, and what is read out is not the end of a
sequence. The first step has seen one input only.

How it decides
--------------
The input is a batch with its samples first and no transpose on the way; the output is indexed as if samples came
first.

When it is wrong
----------------
If the loader itself puts time first.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, made_of, number, plain
from wheeltapper.program.reading import Code

ID = "recurrent-axes"
CAUSE: str | None = "target-misaligned"
DECIDES = True


RECURS = {"LSTM", "GRU", "RNN"}
TURNS = {"transpose", "permute", "t", "swapaxes", "stack", "rearrange", "movedim"}


def check(code: Code) -> Iterator[Finding]:
    story = code.story
    for loss in story.losses:
        for value in made_of(loss):
            net = _output(value)
            if net is None or not story.is_trained(net.args[0]):
                continue
            first = _first(net.args[0])
            place = number(value.args[1].items[1]) if value.args[1].items else None
            if not first and place == -1 and _from_loader(net):
                text = f"{net.args[0].name} is made without batch_first and gets batches with the samples first: it runs from sample to sample."
                yield code.seen(ID, text, net.args[0], value)
                return
            if first and place == 0 and not _both_ways(net.args[0]):
                text = "The output of the first step is taken: it has seen one input of the sequence."
                yield code.seen(ID, text, value, net.args[0])
                return


def _output(value: Val) -> Val | None:
    """`out[:, i]` of what a recurrent layer gives for every step."""
    index = value.args[1] if value.op == "item" and len(value.args) > 1 else None
    if (
        index is None
        or not index.items
        or len(index.items) < 2
        or index.items[0].op != "slice"
        or number(index.items[1]) is None
    ):
        return None
    base = plain(value.args[0])
    if base.op == "item" and base.data == 0:
        base = plain(base.args[0])
    return base if base.op == "net" and base.args[0].op == "call" and base.args[0].name in RECURS else None


def _first(layer: Val) -> bool:
    told = layer.kwargs.get("batch_first")
    return told is not None and told.data is not False


def _both_ways(layer: Val) -> bool:
    told = layer.kwargs.get("bidirectional")
    return told is not None and told.data is not False


def _from_loader(net: Val) -> bool:
    way = list(made_of(net.args[1], deep=False)) if len(net.args) > 1 else []
    return any(v.op == "batch" and v.data is not None and "collate_fn" not in v.data.kwargs for v in way) and not any(
        v.op == "call" and v.name in TURNS for v in way
    )
