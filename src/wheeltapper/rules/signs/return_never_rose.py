"""The episode return of a training agent never rose above where it began.

## What it sees
A return that, over the whole run, stays where the untrained agent had it.

## Why it matters
Losses of policies and of values say nothing about quality: the return is all there is. An agent whose return does not
move learns nothing, however busy its losses look.

## How it decides
A hundred returns at least, from the beginning of the run (the first lies in its first tenth). Tenths of the run: neither
the median nor the mean of any later tenth is better than the first by three standard errors and 2 % of its level, nor
are the last twentieth, nor is any tenth better than the first hundredth. It is
ill only where the record shows that it trains (a loss, an entropy, a rate of exploration, or a name that says so): the
returns of a finished agent at play are as flat. A run that goes on from a checkpoint is not judged. A return that
starts near its end and only repeats one value is ill as well, unless that value is the best a share can be.

## When it is wrong
An agent that begins at its ceiling; a sparse reward that the record is too short to meet.

## References
- OpenAI Spinning Up, Intro to Policy Optimization ("the loss function means nothing").
- Henderson et al. 2018, Deep Reinforcement Learning that Matters (arXiv:1709.06560).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.statistics import badness, noise_of

ID = "return-never-rose"
LIVE = False
ROWS, BEGIN, LEVEL = 100, 0.1, 0.02
TRAINS = {"policy_loss", "value_loss", "entropy", "kl", "loss"}


def look(run: Run, val_metrics: tuple[Series, ...], knobs: Knobs | None = None) -> Answer:
    returns = [s for s in val_metrics if s.quantity == "return" and s.finite.sum() >= ROWS and not s.part]
    if not returns:
        return Unknown("no return, or fewer than a hundred", ("episode returns",))
    series = returns[0]
    x = badness(series.values[series.finite], series.better)
    resumed = any(segment.kind == "resume" for segment in run.segments)
    if resumed or series.at[0] > BEGIN * series.at[-1] or (knobs is not None and knobs.value("finetune.from")):
        return Unknown("the record does not hold the beginning of the training", ("the run from its start",))
    tenths = np.array_split(x, 10)
    noise = noise_of(x)
    share = (1 + noise.rho) / max(1 - noise.rho, 0.05)  # neighbours repeat each other: so many rows are one
    error = 1.25 * noise.sigma * math.sqrt(share / len(tenths[0]))
    spread = float(np.std(x)) * math.sqrt(share / len(tenths[0]))
    level = LEVEL * abs(float(np.median(tenths[0])))
    medians, means = [float(np.median(t)) for t in tenths], [float(np.mean(t)) for t in tenths]
    rose = medians[0] - min(medians[1:]) > max(3 * error, level) or means[0] - min(means[1:]) > max(3 * spread, level)
    early = x[: max(3, len(x) // 100)]  # an agent may learn within the first tenth
    late = x[-max(3, len(x) // 20) :]
    rose = rose or medians[0] - float(np.median(late)) > max(3 * error * math.sqrt(len(tenths[0]) / len(late)), level)
    rose = rose or float(np.median(early)) - min(medians) > max(3 * noise.sigma * math.sqrt(share / len(early)), level)
    sign = -1.0 if series.better == "up" else 1.0
    first, last = sign * medians[0], sign * medians[-1]
    if rose:
        return Clear(f"{series.name} left the level of {first:.4g} that it began with")
    trains = series.split == "train" or any(
        s.quantity in TRAINS or "exploration" in s.raw or "epsilon" in s.raw.lower() for s in run.series.values()
    )
    text = f"{series.name} began at {first:.4g} and ends at {last:.4g}; no tenth of the {len(x)} values is better than the first"
    return seen(
        ID, series, text, severity="ill", grade="is-p" if trains else "suspected", onset=0, p=1e-3, first=first, last=last,
    )  # fmt: skip


_noise = [((i * 7919) % 13 - 6) * 0.8 for i in range(300)]
CASES = {
    "finding": {"return": [21.0 + n for n in _noise], "train/loss": [1.0 - 0.001 * (i % 7) for i in range(300)]},
    "clear": {"return": [21.0 + n + 0.2 * i for i, n in enumerate(_noise)], "train/loss": [1.0] * 300},
    "near miss": {
        "return": [21.0 + n + (30.0 if i > 240 else 0.0) for i, n in enumerate(_noise)],
        "train/loss": [1.0] * 300,
        "expect": "clear",
    },
    "unknown": {"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9]},
}
