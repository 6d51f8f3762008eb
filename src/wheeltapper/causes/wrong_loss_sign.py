"""The loss is maximised.

## What happens
A sign error: each step makes the loss worse, at any learning rate.

## How it shows
The loss rises from the very first step and never falls, smoothly.

## What else looks like this
A learning rate that is too high first falls or oscillates; a curriculum rises by design.

## When this is wrong
The loss fell at any time.

## Fix
Mend the sign; or pass maximize=False.

## Trial
One small step along the gradient: the batch's loss must fall.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- A small step along the gradient must lower the loss of its own batch.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import starts_low
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import running_median
from wheeltapper.sources.record import Floats

ID = "wrong-loss-sign"
AREA = "loop"
EXPLAINS = (
    "diverged",
    "slow-rise",
    "not-finite",
    "above-start",
    "declined-after-peak",
    "at-chance",
    "barely-learned",
    "below-baseline",
    "collapsed",
    "train-val-gap",
    "spiked",
)
PRIOR = -3.5
FAR = 1e3
INVERTED = -0.1  # SSIM of unrelated pictures is above zero (LOG.md); below it the structure is turned round
TRIAL = "take one small step on one batch: its loss must fall"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    told = [*proofs(case, "loss-negated", hint=6.0), *_inverted(case)]
    train: Series | None = case.get("train_loss")
    if train is None or int(train.finite.sum()) < 5:
        return Excluded("no training loss to see it in")
    x = _climb(train.values[train.finite])
    parts = np.array_split(x, 5)
    levels = np.array([float(np.median(part)) for part in parts])
    # Against the noise of the first part: from then on a loss that is maximised only grows.
    noise = 1.5 * float(np.median(np.abs(np.diff(parts[0])))) if len(parts[0]) > 2 else 0.0
    climbs = levels[-1] - levels[0] > max(3 * noise, 0.02 * abs(levels[0]))
    dipped = float(running_median(x, 5).min()) < 0.9 * float(np.median(x[:3]))
    if not climbs or dipped or np.any(np.diff(levels) < -max(2 * noise, 0.02 * abs(levels[0]))):
        return told or Excluded("the loss fell at some time, or does not rise")
    shape = f"the loss rises from the first rows on, without a fall ({levels[0]:.3g} to {levels[-1]:.3g})"
    out = [*told, Evidence(_strength(case, len(x)), shape, "shape", (train.place(0),))]
    whole = train.values[train.finite]
    climb = whole[: int(np.argmax(whole)) + 1]
    if len(climb) >= 6 and climb[-1] > 1e6 * abs(climb[0]) and float(np.mean(np.diff(climb) > 0)) > 0.9:
        # A rate that is too high overshoots to and fro; a loss that is maximised grows row by row.
        out.append(Evidence(1.5, f"it grows row by row, to {climb[-1]:.2g}", "growth"))
    return out


def _inverted(case: Case) -> list[Evidence]:
    """Structure against structure: a network that knows nothing gives an SSIM near zero, one that is trained away from its
    target a negative one."""
    for series in case.run.series.values():
        x = series.values[series.finite]
        if series.quantity == "ssim" and len(x) >= 4 and (end := float(np.median(x[-4:]))) < INVERTED and end < x[0]:
            text = f"{series.name} falls from {x[0]:.2g} to {end:.2g}: training leads away from the target"
            return [Evidence(8.0, text, "inverted", (series.place(len(series) - 1),))]
    return []


def _climb(x: Floats) -> Floats:
    """The values up to a thousand times the first, ten at least: further up a loss goes where overflow takes it."""
    far = np.flatnonzero(np.abs(x) > FAR * max(abs(float(x[0])), 1e-12))
    return x[: max(int(far[0]) + 1, 10)] if len(far) else x


def _strength(case: Case, rows: int) -> float:
    """A rate that is high from the first step on can make a loss climb at once as well; one that warms up cannot."""
    known = case.get("lr") is not None or case.knob("optimizer.lr") is not None
    return 3.0 if known and not starts_low(case) else 5.0 if rows >= 10 else 4.5


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (Remedy("Mend the sign of the loss.", (), "safe", "one small step lowers the loss of its own batch"),)
