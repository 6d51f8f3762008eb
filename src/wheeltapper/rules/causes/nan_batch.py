"""A single batch produced an undefined value.

## What happens
A corrupt sample, an empty mask, all targets ignored, a logarithm of zero: one step gives NaN, and the optimizer writes
it into every weight.

## How it shows
NaN from one row to the next while loss and norms were calm; it comes again at the same batch when replayed, in fp32 too.

## What else looks like this
Overflow in fp16 (passes in fp32), divergence (rises first).

## When this is wrong
The loss or the gradient norm rose over several rows before.

## Fix
Find the batch by replay; guard the operation; skip steps whose gradients are not finite.

## Trial
Replay the batch of the onset in fp32 with anomaly detection: it names the operation.

## References
- PyTorch, torch/nn/utils/clip_grad.py.
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
- ultralytics/ultralytics issue 490 (batches without labels).
- pytorch/pytorch issues 41508 and 103963 (fully masked rows of attention).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "nan-batch"
AREA = "data"
ABOUT = "crash"
EXPLAINS = ("not-finite",)
SHOWS = {"not-finite": "seen", "not-finite-share": "high", "gradient-growth": "in"}
FORBIDS = {"not-finite": "clear"}
TRIAL = "replay the batch of the onset in fp32 with anomaly detection: it names the operation"
REMEDY = Remedy(
    "Replay the batch of the onset; skip steps whose gradients are not finite.", (), "try", "the run passes the onset"
)
