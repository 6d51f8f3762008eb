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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import before_nan, weights_live
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "nan-batch"
AREA = "data"
EXPLAINS = ("not-finite",)
PRIOR = -1.0
TRIAL = "replay the batch of the onset in fp32 with anomaly detection: it names the operation"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    ill = case.found("not-finite", severity="ill")
    train: Series | None = case.get("train_loss")
    if not ill:
        return Excluded("no loss stays NaN")
    out = before_nan(train, case.since(train.clock, "not-finite") if train is not None else None)
    if whole := weights_live(case):
        out.append(Evidence(-3.0, f"{whole}, and row after row is NaN, not one batch", "weights"))
    back = [f for f in case.found("not-finite") if f.severity == "watch"]
    if back:
        out.append(Evidence(0.5, "non-finite values had come and gone before", "earlier"))
    if case.knob("precision") == "fp16":
        out.append(Evidence(-0.5, "fp16 explains a sudden NaN as well", "precision"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Replay the batch of the onset; skip steps whose gradients are not finite.",
            (),
            "try",
            "the run passes the onset",
        ),
    )
