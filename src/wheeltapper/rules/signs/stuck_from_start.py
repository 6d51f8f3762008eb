"""The training loss never moved.

## What it sees
A training loss that ends where it began, within its noise, with no score that improved.

## Why it matters
Nothing is learned: the weights do not change (rate of zero, frozen or disconnected parameters, skipped
updates), or the gradient says nothing (labels that do not belong to their inputs, a dead network).

## How it decides
Block medians of the loss: the level of the last tenth lies less than 1 % below that of the first tenth and
within three standard errors of it, the best stretch in between less than 2 % below, and nothing else in the
record improved beyond its noise. Ten values at least, from the beginning of the run. It is suspected only,
because a model that starts at its floor looks the same: ill where the record spans 3 epochs or 1000 updates
and no pretrained weights are named, else a watch. A learning rate that is still warming up, diffusion, and
adversarial or policy losses are not judged. On the healthy records of the corpus the loss falls by 3.8 % at
least, fine-tuning included (LOG.md, 2026-11-16).

## When it is wrong
Fine-tuning that begins at its floor; an objective whose noise hides all progress.

## References
- Karpathy 2019, A Recipe for Training Neural Networks (karpathy.github.io).
- NVlabs/edm, README.md (Loss/loss beside FID).
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.rules.signs.at_chance import still_warming
from wheeltapper.run.model import Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.curves import Task
from wheeltapper.study.learned import Learned
from wheeltapper.study.statistics import block_medians, noise_of, running_median
from wheeltapper.study.trivial import Trivial

ID = "stuck-from-start"
LIVE = False
ENDS, BEST, ROWS, EPOCHS, UPDATES = 0.01, 0.02, 10, 3, 1000


def look(
    train_loss: Series,
    task: Task,
    learned: Learned,
    knobs: Knobs | None = None,
    lr: Series | None = None,
    trivial_loss: Trivial | None = None,
) -> Answer:
    if task.diffusion:
        return Unknown("a diffusion loss is nearly flat by nature", ("per-noise-level losses on a fixed probe",))
    x = train_loss.values[train_loss.finite]
    if len(x) < ROWS:
        return Unknown(f"fewer than {ROWS} finite training losses", ("a longer record",))
    if len(x) < 0.9 * len(train_loss):
        return Unknown(f"{len(train_loss) - len(x)} of {len(train_loss)} training losses are not finite")
    if train_loss.at[0] > 0.15 * train_loss.at[-1]:
        return Unknown(f"the record begins at {where(train_loss, 0)}", ("the beginning of the run",))
    _, levels = block_medians(x, 200)
    tenth = max(1, len(levels) // 10)
    first, last = float(np.median(levels[:tenth])), float(np.median(levels[-tenth:]))
    noise = noise_of(levels)
    # The median of n correlated values: 1.25 sigma over the root of their effective number.
    error = 1.25 * noise.sigma / math.sqrt(max(1.0, tenth * (1 - noise.rho) / (1 + noise.rho)))
    best = float(running_median(levels, 5).min())
    scale = max(abs(first), 1e-300)
    fell = (first - last) / scale
    if learned.seen or fell > ENDS or abs(first - last) > 3 * math.sqrt(2) * error or (first - best) / scale > BEST:
        return Clear(f"the training loss went from {first:.4g} to {last:.4g}")
    if trivial_loss is not None and abs(last / trivial_loss.loss - 1) < ENDS:
        return Clear(f"the loss stays at {last:.4g}, that of a model that ignores its input: see at-prior")
    if still_warming(lr):
        return Unknown("the learning rate still warms up at the end of the record", ("the run after its warm-up",))
    long = any(
        at is not None and np.isfinite(at).any() and float(np.nanmax(at) - np.nanmin(at)) >= need
        for at, need in ((train_loss.on("epoch"), EPOCHS), (train_loss.on("step"), UPDATES))
    )
    fresh = knobs is None or not knobs.value("finetune.from")
    text = f"{train_loss.name} began at {first:.4g} and ends at {last:.4g} ({len(x)} values, noise {noise.sigma:.2g}): it never moved"
    return seen(
        ID, train_loss, text, severity="ill" if long and fresh else "watch", grade="suspected", onset=0,
        first=first, last=last,
    )  # fmt: skip


CASES = {
    "finding": {"train/loss": [2.303 + 0.01 * ((i * 7) % 5 - 2) for i in range(300)], "spacing": 10},
    "clear": {"train/loss": [2.303 * 0.995**i + 0.01 * ((i * 7) % 5 - 2) for i in range(300)]},
    "near miss": {
        "train/loss": [2.303 + 0.01 * ((i * 7) % 5 - 2) - (0.1 if i > 250 else 0.0) for i in range(300)],
        "expect": "clear",
    },
    "unknown": {"train/loss": [2.0, 1.9]},
}
