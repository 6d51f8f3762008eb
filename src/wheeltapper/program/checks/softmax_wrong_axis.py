"""Probabilities are normalised along the wrong axis.

What it sees
------------
`softmax` or `log_softmax` along the batch instead of along the classes or the keys.

Why it matters
--------------
The samples of a batch compete with each other. What one gets depends on who else is in the batch, and the loss has
another meaning than it should.

How it decides
--------------
The axis is 0, and what is normalised is the output of a network on a batch, without a change of axes in between, or the
scores of attention.

When it is wrong
----------------
If the batch is not the first axis, as in sequence-first code; then a change of axes is usually near.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.wrong_axis import along_the_batch
from wheeltapper.program.play.derive import is_attention
from wheeltapper.program.play.shapes import axes
from wheeltapper.program.play.value import Val, made_of, number
from wheeltapper.program.reading import Code

ID = "softmax-wrong-axis"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    for call in along_the_batch(code, "softmax", "log_softmax"):
        yield code.seen(ID, "The outputs are normalised along the batch, not along the classes.", call)
        return
    for call in code.story.named("softmax", "log_softmax"):
        axis = number(call.arg("dim", 1) or call.arg("axis"))
        if axis in (1, -2) and is_attention(call) and _in_batches(call):
            yield code.seen(ID, "The scores of attention are normalised along another axis than the keys.", call)
            return
        if axis == 1 and call.args and _steps(call.args[0]):
            yield code.seen(
                ID, "The outputs are normalised along the steps of the sequence, not along the classes.", call
            )
            return


def _in_batches(call: Val) -> bool:
    """Whether the scores have more than two axes: the keys were turned with `transpose(-2, -1)`, or views say so."""
    shape = axes(call.args[0])
    if shape is not None:
        return len(shape) > 2
    turned = [
        v
        for v in made_of(call.args[0], deep=False, stop=lambda v: v.op == "net")
        if v.op == "call" and v.name == "transpose"
    ]
    return any({number(a) for a in v.args[1:]} in ({-2, -1}, {1, 2}, {2, 3}) for v in turned)


def _steps(value: Val) -> bool:
    """What a layer makes of every step of a recurrent layer: (samples, steps, classes)."""
    net = value if value.op == "net" and value.args[0].op == "call" and value.args[0].name == "Linear" else None
    if net is None or len(net.args) < 2:
        return False
    inner = net.args[1]
    if inner.op == "item" and inner.data == 0:
        inner = inner.args[0]
    layer = inner.args[0] if inner.op == "net" else None
    first = (
        layer.kwargs.get("batch_first")
        if layer is not None and layer.op == "call" and layer.name in ("LSTM", "GRU", "RNN")
        else None
    )
    return first is not None and first.data is True
