"""The loss was still far up, and falling as steadily as at the start, when the run was over.

## What it sees
A training loss that falls nearly in a straight line over the whole run, by a small part of its level, with
scores that were still improving at the end.

## Why it matters
Learning curves bend: fast at first, then slower. A straight, shallow one means that each update does little:
a rate that is too low, clipping that takes most of the step, or far too few updates.

## How it decides
Only for a run that reached its end, from its beginning. Block medians of the loss after the first tenth: the
second half falls at least 0.8 times and at most 1.25 times as much as the first (more is a decaying rate at
work), both beyond their noise (slope p < 1e-3, autocorrelation taken out), and in all the loss fell by less
than 30 %. Held-out scores, where there are any, must still improve late. On the healthy records of the corpus
that finished, either the curve bends more or the loss fell further (LOG.md, 2026-11-16). Suspected only: a
watch.

## When it is wrong
A decaying rate can speed up the end; a long fine-tuning at its floor; objectives that are flat by nature
(diffusion: not judged).

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Label smoothing e over C classes leaves a floor of -(1-e+e/C) ln(1-e+e/C) - (C-1)(e/C) ln(e/C).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.study.curves import Task
from wheeltapper.study.learned import improves_late
from wheeltapper.study.progress import Progress
from wheeltapper.study.statistics import block_medians, slope_p

ID = "too-slow"
LIVE = False
ROWS, STRAIGHT, FELL, P = 40, 0.8, 0.30, 1e-3


def look(
    train_loss: Series,
    task: Task,
    progress: Progress,
    val_loss: Series | None = None,
    val_metrics: tuple[Series, ...] = (),
) -> Answer:
    if task.diffusion:
        return Unknown("a diffusion loss is nearly flat by nature", ("per-noise-level losses on a fixed probe",))
    if progress.state != "finished" or (progress.share is not None and progress.share < 0.95):
        return Unknown("the run is not known to have reached its end", ("the planned length",))
    x = train_loss.values[train_loss.finite]
    if train_loss.window == "running":
        return Unknown("the loss is a running mean, which bends with every epoch", ("the loss of single batches",))
    if len(x) < ROWS or x.min() <= 0 or train_loss.at[0] > 0.15 * train_loss.at[-1]:
        return Unknown(f"fewer than {ROWS} positive training losses from the beginning", ("a longer record",))
    spots, levels = block_medians(x, 200)
    cut = max(1, len(levels) // 10)
    spots, levels = spots[cut:], levels[cut:]
    half = len(levels) // 2
    (early, p_early), (late, p_late) = (slope_p(spots[:half], levels[:half]), slope_p(spots[half:], levels[half:]))
    first, last = float(np.median(x[: max(1, len(x) // 50)])), float(np.median(levels[-max(1, len(levels) // 20) :]))
    fell = 1 - last / first
    if (
        early >= 0
        or late >= 0
        or max(p_early, p_late) >= P
        or not STRAIGHT <= late / early <= 1 / STRAIGHT
        or not 0 < fell < FELL
    ):
        return Clear(
            f"the loss fell by {fell:.0%}, in the second half {late / early if early else 0:.2g} times as fast as in the first"
        )
    scores = [s for s in (val_loss, *val_metrics[:3]) if s is not None and len(s) >= 8]
    if scores and not any(improves_late(s) for s in scores):
        return Clear(f"{scores[0].name} had settled by the end")
    text = f"{train_loss.name} fell by only {fell:.0%} over the whole run ({first:.4g} to {last:.4g}), as fast at the end as at the start ({late / early:.2g}x)"
    return seen(ID, train_loss, text, severity="watch", grade="suspected", onset=0, fell=fell, straight=late / early)


CASES = {
    "finding": {
        "train/loss": [2.0 - 0.001 * i + 0.01 * ((i * 7) % 5) for i in range(400)],
        "facts": {"total_steps": 400},
    },
    "clear": {"train/loss": [2.0 * (1 + i / 20) ** -0.5 for i in range(400)], "facts": {"total_steps": 400}},
    "near miss": {"train/loss": [2.0 - 0.001 * i + 0.01 * ((i * 7) % 5) for i in range(400)], "expect": "unknown"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
