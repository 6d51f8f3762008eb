"""The run needs more memory than there is.

## What happens
Weights, optimizer state, activations and fragments together pass the limit at some batch: the largest one, the
first validation, the first step of the optimizer.

## How it shows
The log ends with an out-of-memory error, or the system killed the process without a word from Python.

## What else looks like this
A leak (memory grew for long before), another job on the same device, a limit of the scheduler.

## When this is wrong
The log ends with another error.

## Fix
A smaller batch with accumulation to the same effective size, activation checkpointing, lower precision,
validation without gradients.

## Trial
One step with the largest batch, then one validation: minutes.

## References
- PyTorch FAQ, docs/source/notes/faq.rst ("My model reports CUDA runtime error(2): out of memory").
- PyTorch, docs/source/notes/cuda.rst (memory management).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "out-of-memory"
AREA = "system"
ABOUT = "crash"
EXPLAINS = ("crashed",)
SHOWS = {"crashed": "seen", "not-finite": "clear"}
FORBIDS = {"crashed": "clear"}
TRIAL = "one step with the largest batch, then one validation: minutes"


def remedies(case: Case) -> tuple[Remedy, ...]:
    each, steps = case.knob("batch.per_device"), case.knob("batch.accumulation")
    if isinstance(each, int) and each >= 2 and each % 2 == 0 and isinstance(steps, int) and steps >= 1:
        edits = (Edit("batch.per_device", each, each // 2), Edit("batch.accumulation", steps, 2 * steps))
        return (
            Remedy(
                "Half the batch and twice the accumulation: the same effective batch.",
                edits,
                "safe",
                "peak memory falls, the curve stays",
            ),
        )
    return (Remedy("Halve the batch, or save memory by activation checkpointing.", (), "try", "peak memory falls"),)
