"""The generator makes a few kinds of images only.

## What happens
It finds some images that fool the discriminator and leaves the rest of the data out.

## How it shows
Diversity falls (recall, coverage, the spread between samples) while the look of single images (precision) holds;
FID turns and rises.

## What else looks like this
A discriminator that won (its loss is near zero), overfitting of the discriminator on little data, a metric that
is broken.

## When this is wrong
Recall holds while FID rises: then quality fell, not diversity.

## Fix
A checkpoint before the turn; a gradient penalty, a larger batch, augmentation of the discriminator's inputs.

## Trial
A thousand samples of the last checkpoint: the share of near-duplicates against that of the best checkpoint.

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Kynkäänniemi et al. 2019, Improved Precision and Recall Metric for Assessing Generative Models
  (arXiv:1904.06991).
- Heusel et al. 2017, GANs Trained by a Two Time-Scale Update Rule (arXiv:1706.08500), the definition of
  FID.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import series_like
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "mode-collapse"
AREA = "adversarial"
EXPLAINS = ("declined-after-peak", "collapsed")
PRIOR = -2.0
TRIAL = "a thousand samples of the last checkpoint: the share of near-duplicates against the best checkpoint"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    task = case.get("task")
    if task is None or not (task.adversarial or case.knob("gan.enabled")):
        return Excluded("this is not adversarial training")
    out = []
    recall = [s for s in case.get("val_metrics") or () if s.quantity == "recall"]
    recall += series_like(case.run, r"pr50k\w*recall|coverage|diversity")
    held = None
    for series in recall:
        held = _kept(series)
        if held is not None and held < 0.5:
            out.append(Evidence(5.0, f"{series.name} fell to {held:.0%} of its best", "diversity", (series.place(0),)))
            break
    if held is not None and held > 0.9:
        return Excluded(f"{recall[0].name} holds: the variety is still there")
    turned = [f for f in case.found("declined-after-peak", "collapsed", severity="ill")
              if any(word in (f.series or "") for word in ("fid", "kid", "inception"))]  # fmt: skip
    if turned:
        out.append(Evidence(2.0, turned[0].summary, "quality", turned[0].places))
    if case.found("discriminator-wins"):
        out.append(Evidence(-1.5, "the discriminator won, which explains it by itself", "discriminator"))
    if case.found("impossible-value"):
        out.append(Evidence(-3.0, "the metric takes impossible values", "metric"))
    return out


def _kept(series: Series) -> float | None:
    """The end over the best, of a score where more is better."""
    x = series.values[series.finite]
    if len(x) < 6 or x.max() <= 0:
        return None
    best = float(np.median(np.sort(x)[-3:]))
    return float(np.median(x[-3:])) / best if best > 0 else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Return to the checkpoint before the turn; augment the discriminator's inputs or add a penalty.", (),
               "try", "recall holds while FID falls"),
    )  # fmt: skip
