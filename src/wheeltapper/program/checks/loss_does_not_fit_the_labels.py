"""A loss for numbers on numbers that are classes.

What it sees
------------
A Keras classifier with several outputs and integer labels, compiled with a squared error.

Why it matters
--------------
Every output is pulled towards the number of the class: it learns the mean class number, and accuracy stays near
chance.

How it decides
--------------
The loss is mse or mae, the last layer has more than two outputs, accuracy is a metric, and nothing in the program
makes the labels one-hot.

When it is wrong
----------------
If the labels are one-hot in the file.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.output_does_not_fit_the_loss import last_layer
from wheeltapper.program.play.value import number, text_of
from wheeltapper.program.reading import Code

ID = "loss-does-not-fit-the-labels"
CAUSE: str | None = "objective-mismatch"
DECIDES = True


NUMBERS = {"mse", "mae", "mean_squared_error", "mean_absolute_error", "MeanSquaredError", "MeanAbsoluteError"}
ONE_HOT = ("to_categorical", "one_hot", "get_dummies", "OneHotEncoder", "LabelBinarizer", "label_binarize")


def check(code: Code) -> Iterator[Finding]:
    if code.calls_any(*ONE_HOT):
        return
    for call in code.story.named("compile"):
        loss = call.kwargs.get("loss")
        name = text_of(loss) or (loss.name if loss is not None else "")
        last = last_layer(call.args[0]) if call.args else None
        metrics = call.kwargs.get("metrics")
        scored = any(
            "acc" in (text_of(m) or m.name).lower() for m in (metrics.items or [] if metrics is not None else [])
        )
        units = number(last.arg("units", 0)) if last is not None and last.name == "Dense" else None
        if name in NUMBERS and units is not None and units > 2 and scored:
            yield code.seen(
                ID,
                f"{name} is the loss of a classifier with {units:g} outputs and class numbers as labels.",
                loss or call,
                call,
                grade="suspected",
            )
            return
