"""A loss, or a component of it, is exactly zero.

## What it sees
A training loss or a component that is exactly 0 on (nearly) every row, or from some point on.

## Why it matters
A loss of exactly zero has no gradient. All labels may be masked, no target may match, a term may be
switched off.

## How it decides
Exact. The whole loss exactly zero on five rows in a row or more is ill. A component that is zero from the
first to the last row is ill only if the validation metric is poor as well (best under 5 % of its scale):
a term that cannot apply (a class loss with one class) is zero in healthy runs too. The loss of a policy is not judged:
it is zero where the policy has become certain.

## When it is wrong
A logger that prints too few digits: a value below its last digit reads as zero. A loss that is clipped at
zero by design (hinge, triplet) reaches it when everything is learned.

## References
- huggingface/trl issues 5662 and 6668 (every label masked after truncation).
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- PyTorch, torch.nn.CrossEntropyLoss (unnormalised logits; the mean over ignored targets only is NaN).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.study.curves import Task

ID = "loss-exactly-zero"
LIVE = True
POOR = 0.05


def look(run: Run, task: Task, val_metrics: tuple[Series, ...] = ()) -> Answer | list[Finding]:
    if task.reinforcement:
        return Clear("the loss of a policy is 0 where the policy is certain")
    losses = [s for s in run.series.values() if s.quantity == "loss" and s.split == "train" and len(s) >= 5]
    out = []
    best = [
        float(np.nanmax(s.values[s.finite])) / (100.0 if s.unit == "%" else 1.0)
        for s in val_metrics
        if s.quantity in ("map", "map50", "accuracy", "iou") and s.finite.any()
    ]
    poor = bool(best) and max(best) < POOR
    for series in losses:
        zero = series.values == 0
        if series.part:
            others = [s for s in losses if s.part and s is not series and np.any(s.values != 0)]
            if bool(zero.all()) and others:
                text = f"{series.name} is exactly 0 on all {len(series)} rows"
                text += f", and the best validation score is {max(best):.3g}" if best else ""
                out.append(
                    seen(ID, series, text, severity="ill" if poor else "note", grade="is", onset=0, rows=len(series))
                )
            continue
        run_start = _long_zero_run(zero)
        if run_start is not None:
            text = f"{series.name} is exactly 0 from {where(series, run_start)} on"
            out.append(seen(ID, series, text, severity="ill", grade="is", onset=run_start, rows=int(zero.sum())))
    return out or Clear("no training loss is exactly zero")


def _long_zero_run(zero: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> int | None:
    """Start of a stretch of zeros that lasts to the end and is at least five rows long."""
    if len(zero) < 5 or not zero[-5:].all():
        return None
    live = np.flatnonzero(~zero)
    return int(live[-1]) + 1 if len(live) else 0


CASES = {
    "finding": {"train/loss": [1.2, 0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]},
    "clear": {"train/loss": [1.2, 0.9, 0.5, 0.4, 0.3, 0.2]},
    "near miss": {"train/loss": [1.2, 0.9, 0.0, 0.4, 0.3, 0.2, 0.1], "expect": "clear"},
}
