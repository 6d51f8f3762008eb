"""A share of the batches is given as a count.

What it sees
------------
limit_train_batches, limit_val_batches or overfit_batches as the whole number 1 in a run of many epochs.

Why it matters
--------------
The number 1.0 means all batches, and 1 means one: every epoch sees a single batch.

How it decides
--------------
The value is a whole number of 1 or a few, given to a Lightning trainer (in code or in the file that LightningCLI
reads) which runs for more than a few epochs, and no fast_dev_run.

When it is wrong
----------------
A test of the machinery on purpose.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.play.value import number
from wheeltapper.program.reading import Code

ID = "one-batch-by-count"
CAUSE: str | None = "too-few-updates"
DECIDES = True

def check(code: Code) -> Iterator[Finding]:
    for call in code.story.named("Trainer"):
        epochs = number(call.kwargs.get("max_epochs"))
        for name in ("limit_train_batches", "overfit_batches"):
            given = call.kwargs.get(name)
            if given is not None and given.op == "const" and type(given.data) is int and 1 <= given.data <= 3 and epochs is not None and epochs > 3:
                yield code.seen(ID, f"{name} is {given.data}, a count: every epoch sees {given.data} batch.", given, call)
                return
