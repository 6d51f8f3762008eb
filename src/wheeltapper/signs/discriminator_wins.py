"""One discriminator of an adversarial pair has won.

## What it sees
A discriminator loss that sinks to nearly zero while its generator's adversarial loss climbs to the value
it has when the discriminator is never fooled, to the end of the record.

## Why it matters
A discriminator that is always right gives the generator no useful gradient: the adversarial term stops
teaching. A falling or flat adversarial loss as such means nothing (equilibrium is not zero).

## How it decides
On pairs that belong together (D_A with G_A). Block medians over the last quarter of the record: the
discriminator's loss below 5 % of its level at equilibrium (0.25 for least squares, ln 2 for cross
entropy) and the generator's loss above 90 % of "D always says fake" (1 for least squares), or above four
times its level in the first tenth. A pair whose other direction stays healthy is said so.

## When it is wrong
Losses that print few digits; Wasserstein critics, which have no such levels (negative losses: not judged).

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Mao et al. 2017, Least Squares Generative Adversarial Networks (arXiv:1611.04076): D is 0.5 at
  equilibrium, its loss 0.25.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.run.model import Run, Series
from wheeltapper.signals.curves import Task
from wheeltapper.signs import seen, where

ID = "discriminator-wins"
LIVE = False
EQUILIBRIUM = 0.25  # least squares, half of (real − 1)² + fake²; cross entropy lies higher, so this is careful


def look(run: Run, task: Task) -> Answer | list[Finding]:
    if not task.adversarial:
        return Unknown("this is not adversarial training", ("discriminator and generator losses",))
    pairs = _pairs(run)
    if not pairs:
        return Unknown("no discriminator loss with its generator loss is logged", ("D and G losses",))
    out = []
    for d, g in pairs:
        n = min(len(d), len(g))
        if n < 20 or np.nanmin(d.values) < 0:
            continue
        last = slice(-max(5, n // 4), None)
        d_end, g_end = float(np.nanmedian(d.values[last])), float(np.nanmedian(g.values[last]))
        g_start = float(np.nanmedian(g.values[: max(3, n // 10)]))
        if d_end < 0.05 * EQUILIBRIUM and (g_end > 0.9 or g_end > 4 * g_start):
            onset = _since(d.values, 0.1 * EQUILIBRIUM)
            text = (
                f"{d.raw} sank to {d_end:.3g} and {g.raw} sits at {g_end:.3g} since {where(d, onset)}: "
                "the discriminator is never fooled"
            )
            out.append(seen(ID, d, text, severity="ill", grade="is", onset=onset, d=d_end, g=g_end))
    return out or Clear("no discriminator loss has sunk to zero")


def _pairs(run: Run) -> list[tuple[Series, Series]]:
    """D_A with G_A; d_loss with g_loss."""
    ds = {_suffix(s.raw): s for s in run.series.values() if s.quantity == "gan_d"}
    gs = {_suffix(s.raw): s for s in run.series.values() if s.quantity == "gan_g"}
    return [(ds[key], gs[key]) for key in ds if key in gs]


def _suffix(raw: str) -> str:
    found = re.search(r"[DG]_([A-Z])$", raw)
    return found.group(1) if found else ""


def _since(values: np.ndarray[tuple[int], np.dtype[np.float64]], level: float) -> int:
    """The first index from which the median of the next twentieth of the record stays below `level`."""
    width = max(5, len(values) // 20)
    edges = list(range(0, len(values) - width + 1, width))
    below = [bool(np.nanmedian(values[i : i + width]) < level) for i in edges]
    start = len(below)
    while start and below[start - 1]:
        start -= 1
    return edges[min(start, len(edges) - 1)] if edges else 0


_n = 100
CASES = {
    "finding": {"D_A": [0.2] * 30 + [0.002] * 70, "G_A": [0.4] * 30 + [0.99] * 70},
    "clear": {"D_A": [0.2, 0.22] * 50, "G_A": [0.4, 0.35] * 50},
    "near miss": {"D_A": [0.1, 0.12] * 50, "G_A": [0.6, 0.65] * 50, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}
