"""A distributed sampler is never told the epoch.

What it sees
------------
A shuffling `DistributedSampler` for training, a loop over epochs, and no call of `set_epoch`.

Why it matters
--------------
The sampler seeds its shuffle with the epoch. Without it every epoch runs through the data in the same order, with
the same samples in the same batches.

How it decides
--------------
No `set_epoch` occurs in the program. Samplers with `shuffle=False` or named for validation, and programs whose
framework (Lightning, Accelerate, HF Trainer) sets the epoch, are left alone.

When it is wrong
----------------
If the sampler is handed to a library that sets the epoch; a single epoch needs none.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheeltapper.finding import Finding
from wheeltapper.program.checks.val_in_train_mode import VALIDATION
from wheeltapper.program.conditions import part_reachable
from wheeltapper.program.program import argument
from wheeltapper.program.reading import Code

ID = "set-epoch-missing"
CAUSE = "data-not-shuffled"
DECIDES = True


def check(code: Code) -> Iterator[Finding]:
    if code.by_framework or code.made("engine") or code.calls_any("set_epoch", "prepare", "setup_dataloaders"):
        return
    deep = [b for b in code.loop.backwards if len(b.loops) > 1]
    for part in code.made("sampler"):
        shuffle = argument(part.call, "shuffle", 3)
        if shuffle is not None and code.values.value(shuffle) is not True:
            continue
        own = {n for n in part.names if "sampler" in n.lower()} or set(part.names)
        if not deep or not own or any(VALIDATION.search(n) for n in own) or not part_reachable(code, part.call):
            continue
        yield code.finding(
            ID,
            "DistributedSampler shuffles by the epoch it is told, and set_epoch() is never called: every epoch has the same order.",
            part.call,
            deep[0].loops[0],
            severity="watch",
        )
