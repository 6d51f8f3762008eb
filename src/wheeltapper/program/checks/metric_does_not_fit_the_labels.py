"""A metric expects other labels than the loss.

What it sees
------------
A loss for class numbers together with a metric for one-hot labels, or the other way round.

Why it matters
--------------
The metric compares what cannot be compared; checkpoints and early stopping that follow it choose by chance.

How it decides
--------------
Loss and metrics of `compile()`, by their names: the sparse ones take class numbers, the others one-hot rows.

When it is wrong
----------------
Never, where both see the same labels.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import Val
from wheeltapper.program.reading import Code

ID = "metric-does-not-fit-the-labels"
CAUSE: str | None = "eval-broken"
DECIDES = True

NUMBERS = {"SparseCategoricalCrossentropy", "sparse_categorical_crossentropy"}
ROWS = {"CategoricalCrossentropy", "categorical_crossentropy", "CategoricalFocalCrossentropy"}
OF_NUMBERS = {"SparseCategoricalAccuracy", "sparse_categorical_accuracy", "SparseTopKCategoricalAccuracy", "sparse_top_k_categorical_accuracy"}
OF_ROWS = {"CategoricalAccuracy", "categorical_accuracy", "TopKCategoricalAccuracy", "top_k_categorical_accuracy"}
OF_TWO = {"BinaryAccuracy", "binary_accuracy"}


def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("compile"):
        loss, metrics = call.kwargs.get("loss"), call.kwargs.get("metrics")
        if loss is None or metrics is None:
            continue
        wrong = OF_ROWS | OF_TWO if _name(loss) in NUMBERS else OF_NUMBERS | OF_TWO if _name(loss) in ROWS else set()
        for metric in metrics.items or []:
            if _name(metric) in wrong:
                yield code.seen(ID, f"{_name(metric)} expects other labels than the loss {_name(loss)}.", metric, call)
                return


def _name(value: Val) -> str:
    return value.data if value.op == "const" and isinstance(value.data, str) else value.name
