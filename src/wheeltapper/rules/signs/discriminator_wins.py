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
times its level in the first tenth; and the discriminator's loss is down on the last fortieth, too. A pair whose other direction stays healthy is said so. A watch where the
generator is taught by other terms as well (pixels, features) and no held-out score fell.

## When it is wrong
Losses that print few digits; Wasserstein critics, which have no such levels (negative losses: not judged).

## References
- Goodfellow et al. 2014, Generative Adversarial Networks (arXiv:1406.2661).
- Mao et al. 2017, Least Squares Generative Adversarial Networks (arXiv:1611.04076): D is 0.5 at
  equilibrium, its loss 0.25.
"""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Severity, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.study.curves import Task, worth_acting
from wheeltapper.study.statistics import badness, fall_from_best

ID = "discriminator-wins"
LIVE = False
EQUILIBRIUM = 0.25  # least squares, half of (real − 1)² + fake²; cross entropy lies higher, so this is careful


def look(run: Run, task: Task, val_metrics: tuple[Series, ...] = ()) -> Answer | list[Finding]:
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
        still = float(np.nanmedian(d.values[-max(5, n // 40) :])) < 0.1 * EQUILIBRIUM  # one that lost it again has not won
        if d_end < 0.05 * EQUILIBRIUM and still and (g_end > 0.9 or g_end > 4 * g_start):
            onset = _since(d.values, 0.1 * EQUILIBRIUM)
            text = (
                f"{d.raw} sank to {d_end:.3g} and {g.raw} sits at {g_end:.3g} since {where(d, onset)}: "
                "the discriminator is never fooled"
            )
            harms = not val_metrics or not _other_terms(run) or any(_fell(s) for s in val_metrics)
            severity: Severity = "ill" if harms else "watch"
            out.append(seen(ID, d, text, severity=severity, grade="is", onset=onset, d=d_end, g=g_end))
    return out or Clear("no discriminator loss has sunk to zero")


def _other_terms(run: Run) -> bool:
    """A generator that is taught by pixels or features as well goes on learning when the discriminator has won."""
    return any(s.quantity == "loss" and s.split == "train" for s in run.series.values())


def _fell(score: Series) -> bool:
    fall = fall_from_best(badness(score.values, score.better))
    return fall is not None and fall.p < 1e-3 and fall.drop > worth_acting(score, fall.best)


def _pairs(run: Run) -> list[tuple[Series, Series]]:
    """D_A with G_A; d_loss with g_loss; the mean of l_d_real and l_d_fake with l_g_gan."""
    ds = {_suffix(s.raw): s for s in run.series.values() if s.quantity == "gan_d"}
    gs = {_suffix(s.raw): s for s in run.series.values() if s.quantity == "gan_g"}
    if not ds:
        halves = [s for s in run.series.values() if s.quantity in ("gan_real", "gan_fake") and s.raw.lower().startswith("l_")]
        if len(halves) == 2 and np.array_equal(halves[0].at, halves[1].at):
            ds = {"": replace(halves[0], raw="l_d", values=(halves[0].values + halves[1].values) / 2)}
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
    "real and made apart, and the score fell": {
        "l_d_real": [0.7] * 30 + [1e-9] * 70, "l_d_fake": [0.7] * 30 + [0.001] * 70, "l_g_gan": [0.03] * 30 + [0.4] * 70,
        "l_g_pix": [0.02] * 100, "val/psnr": [28.0 + 0.01 * i for i in range(40)] + [28.0 - 0.2 * i for i in range(60)],
        "expect": "ill",
    },
    "the score holds": {
        "l_d_real": [0.7] * 30 + [1e-9] * 70, "l_d_fake": [0.7] * 30 + [0.001] * 70, "l_g_gan": [0.03] * 30 + [0.4] * 70,
        "l_g_pix": [0.02] * 100, "val/psnr": [28.0 + 0.01 * i for i in range(100)], "expect": "watch",
    },
    "clear": {"D_A": [0.2, 0.22] * 50, "G_A": [0.4, 0.35] * 50},
    "lost again": {"D_A": [0.2] * 30 + [0.002] * 60 + [0.1] * 10, "G_A": [0.4] * 30 + [0.99] * 60 + [0.5] * 10, "expect": "clear"},
    "near miss": {"D_A": [0.1, 0.12] * 50, "G_A": [0.6, 0.65] * 50, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}  # fmt: skip
