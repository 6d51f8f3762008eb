"""The last layer does not fit the loss.

What it sees
------------
A Keras model whose last layer has no softmax (or sigmoid) while its loss takes probabilities, or has one while the
loss takes logits; a softmax over a single output.

Why it matters
--------------
Probabilities taken for logits put a floor under the loss; logits taken for probabilities make it meaningless; a
softmax over one output is always 1.

How it decides
--------------
The activation of the last layer of a Sequential or functional model, against the loss given to `compile`.

When it is wrong
----------------
If a layer that is not seen comes after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val, number, text_of
from wheeltapper.program.reading import Code

ID = "output-does-not-fit-the-loss"
CAUSE: str | None = "output-activation-wrong"
DECIDES = True

TAKES = {
    "sparse_categorical_crossentropy": "softmax", "categorical_crossentropy": "softmax", "binary_crossentropy": "sigmoid",
    "SparseCategoricalCrossentropy": "softmax", "CategoricalCrossentropy": "softmax", "BinaryCrossentropy": "sigmoid",
}  # fmt: skip


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("compile"):
        loss = call.kwargs.get("loss")
        name = text_of(loss) or (loss.name if loss is not None else "")
        if loss is None or name not in TAKES or not call.args:
            continue
        last = last_layer(call.args[0])
        if last is None or last.name != "Dense":
            continue
        logits = loss.kwargs.get("from_logits")
        wants = not (logits is not None and logits.data is True)
        activation = text_of(last.kwargs.get("activation"))
        units = number(last.args[0] if last.args else last.kwargs.get("units"))
        if activation == "softmax" and units == 1:
            yield code.seen(ID, "A softmax over a single output is always 1.", last, call)
        elif wants and activation in (None, "linear", "relu"):
            yield code.seen(
                ID, f"{name} takes probabilities, and the last layer has no {TAKES[name]}.", last, loss, call
            )
        elif not wants and activation == "relu":
            yield code.seen(
                ID, "The loss takes logits, and the last layer cuts off all below zero (relu).", last, loss, call
            )


def last_layer(model: Val) -> Val | None:
    if model.op == "call" and model.name == "Sequential":
        layers = model.args[0].items if model.args and model.args[0].items else list(model.args)
        return layers[-1] if layers else None
    if model.op == "call" and model.name == "Model":
        out = model.arg("outputs", 1)
        return out.args[0] if out is not None and out.op == "net" else None
    return None
