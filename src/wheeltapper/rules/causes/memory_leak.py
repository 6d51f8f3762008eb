"""Memory grows from step to step until it is full.

## What happens
Something keeps what should be freed: a loss that is summed with its graph, outputs in a list, a validation that
builds gradients, loader workers that copy a large Python list.

## How it shows
Allocated memory rises at a steady rate at the same phase of the step; the run ends out of memory late.

## What else looks like this
Longer inputs later on, a cache that fills and stops, fragmentation (reserved grows, allocated does not), a batch
that is simply too large (dies at once).

## When this is wrong
Memory is flat, or steps up once and stays.

## Fix
.item() or detach() what is kept for logging; no_grad in validation; arrays instead of lists in the data set.

## Trial
Two hundred steps on one repeated batch: allocated memory must not move.

## References
- PyTorch FAQ, docs/source/notes/faq.rst ("My model reports CUDA runtime error(2): out of memory").
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "memory-leak"
AREA = "system"
ABOUT = "efficiency"
EXPLAINS = ("memory-growth", "crashed")
SHOWS = {"memory-change": "high", "memory-growth": "seen"}
FORBIDS = {"memory-change": "in"}
PROVED_BY = ("eval-without-no-grad", "loss-kept")
TRIAL = "two hundred steps on one repeated batch: allocated memory must not move"
REMEDY = Remedy(
    "Detach what is kept for logging, and validate without gradients.",
    (),
    "safe",
    "allocated memory is flat after the first hundred steps",
)
