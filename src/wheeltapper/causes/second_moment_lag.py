"""Adam's second moment lags behind gradients that suddenly grow.

## What happens
Adam's steps are normalised by a slow average of squared gradients. When gradients grow faster than that average
follows (1/(1 - beta2) steps), the first steps are far too long, and the loss spikes a few steps later.

## How it shows
A spike long after the start, at a rate that had been fine, with the gradient norm jumping one to eight steps
before the loss; beta2 at 0.99 or more.

## What else looks like this
A rate that is too high (it breaks at the peak of the schedule), a bad batch (norm and loss jump on the same
row), fp16 overflow (the loss scale falls).

## When this is wrong
beta2 is 0.95 or less, the optimizer has no second moment, or the log is too sparse to see which came first.

## Fix
A lower beta2, update clipping (StableAdamW, Adafactor), or clipping of the gradient norm.

## Trial
Replay from before the spike with beta2 at 0.95, same data: the spike must shrink or go.

## References
- Wortsman et al. 2023, Stable and low-precision training for large-scale vision-language models
  (arXiv:2304.13013).
- BigScience, lessons learned (bigscience-workshop/bigscience, train/lessons-learned.md).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import robust_sigma

ID = "second-moment-lag"
AREA = "learning rate"
EXPLAINS = ("spiked", "diverged")
PRIOR = -2.5
TRIAL = "replay from before the spike with beta2 at 0.95, same data and order"

LEAD = 8  # steps, from the paper
Z = 6.0  # log norms have heavy tails; six robust sigmas are rare in a quiet window (ST-06)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    name, betas = str(case.knob("optimizer.name") or "").lower(), case.knob("optimizer.betas")
    if name and not any(word in name for word in ("adam", "lamb", "rmsprop")):
        return Excluded(f"{name} keeps no second moment")
    beta2 = float(betas[1]) if isinstance(betas, list) and len(betas) > 1 else None
    if beta2 is not None and beta2 <= 0.95:
        return Excluded(f"beta2 is {beta2:g}: the average follows within {1 / max(1 - beta2, 1e-9):.0f} steps")
    broke = case.found("spiked", "diverged", severity="ill")
    norm: Series | None = case.get("grad_norm")
    train: Series | None = case.get("train_loss")
    if not broke or broke[0].onset is None or train is None or norm is None or norm.clock != "step":
        return []
    onset = broke[0].onset
    before = norm.values[(norm.at < onset - LEAD) & norm.finite & (norm.values > 0)]
    gap = float(np.median(np.diff(norm.at))) if len(norm) > 1 else np.inf
    if len(before) < 20 or gap > LEAD / 2:
        return []
    quiet = np.log(before[-200:])
    limit = float(np.median(quiet)) + Z * max(robust_sigma(quiet), 1e-6)
    window = (norm.at >= onset - LEAD) & (norm.at <= onset + gap / 2) & norm.finite & (norm.values > 0)
    jumped = norm.at[window][np.log(norm.values[window]) > limit]
    if not len(jumped):
        return [Evidence(-1.5, "the gradient norm was in its usual range before the spike", "lead")]
    lead = onset - float(jumped[0])
    if lead < 1:
        return [Evidence(-1.0, "norm and loss jump on the same row, as after one bad batch", "lead")]
    out = [Evidence(3.0, f"the gradient norm jumps {lead:g} steps before the loss", "lead")]
    if beta2 is not None:
        text = f"beta2 {beta2:g} takes {1 / max(1 - beta2, 1e-9):.0f} steps to follow"
        out.append(Evidence(1.0 if beta2 >= 0.99 else 0.0, text, "beta2"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    betas = case.knob("optimizer.betas")
    edits: tuple[Edit, ...] = ()
    if isinstance(betas, list) and len(betas) > 1:
        edits = (Edit("optimizer.betas", betas, [betas[0], 0.95], "follows within 20 steps"),)
    return (
        Remedy("Lower beta2 to 0.95, or clip updates.", edits, "try", "the norm may jump, the loss no longer does"),
    )
