"""A noisy, nearly flat loss is expected of a diffusion model.

## What happens
Each batch draws its noise levels anew, and the loss at low and at high noise differs by orders of magnitude: most of
the variance of the curve is which levels were drawn.

## How it shows
The loss of single rows scatters widely around a level that hardly falls after the start.

## What else looks like this
A plateau, or a divergence read from two single rows.

## When this is wrong
The loss by noise level, on fixed items and fixed noise, rises.

## Fix
Nothing to mend. Log the loss by noise level on a fixed probe, and a score of samples.

## Trial
The same checkpoint twice with other noise: the two values differ by as much as the curve scatters.

## References
- NVlabs/edm, README.md (Loss/loss beside FID).
- crowsonkb/k-diffusion, k_diffusion/utils.py (stratified noise levels).
- annahayoon/DomainAdaptive_PoissonDiffusion, training_issues_analysis.md: two single-batch losses read as
  a divergence.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import noise_of

ID = "normal-diffusion-noise"
AREA = "objective"
NORMAL = True
SCATTER = 0.3  # of the gain since the first rows: so much noise hides a trend from the eye


def expect(case: Case) -> str:
    train: Series | None = case.get("train_loss")
    if not case.get("task").diffusion or train is None:
        return ""
    x = train.values[train.finite]
    if len(x) < 50 or case.found("diverged", "not-finite", "worse-than-trivial", severity="ill"):
        return ""
    later = x[len(x) // 5 :]
    sigma = noise_of(later).sigma
    k = max(5, len(later) // 10)
    trend = abs(float(np.median(later[:k]) - np.median(later[-k:])))
    level = abs(float(np.median(later)))
    if sigma < SCATTER * max(trend, 1e-12) or sigma < 0.01 * level:
        return ""
    return (
        f"rows that scatter by {sigma / level:.0%} around a nearly flat level are expected here because every batch of a "
        "diffusion model draws its noise levels anew"
    )
