"""The learning rate starts at its full height.

## What happens
Adam's second moments are unknown in the first steps and its updates are as large as the rate allows; a deep network
leaves its initial region before the statistics settle.

## How it shows
An excursion of the loss in the first steps (of the order of 2/(1 - beta2)), later slow or unstable training; no rise of
the rate in the log.

## What else looks like this
A rate that is too high breaks at any time, not only at the start; a bad initialisation shows in the first loss.

## When this is wrong
The rate does warm up, or the trouble comes long after the first steps.

## Fix
A linear warm-up of 2/(1 - beta2) steps (2000 at 0.999, 40 at 0.95), at most a tenth of the run.

## Trial
The first 500 steps with and without warm-up, five seeds each.

## References
- Ma and Yarats 2019, On the adequacy of untuned warmup for adaptive optimization (arXiv:1910.04209).
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Goyal et al. 2017, Accurate, Large Minibatch SGD (arXiv:1706.02677).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import length_of_run
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "no-warmup"
AREA = "learning rate"
EXPLAINS = ("diverged", "not-finite", "spiked", "stuck-from-start")
PRIOR = -2.0
TRIAL = "the first 500 steps with and without warm-up, five seeds each"


EARLY = 0.05  # of the record, or 2000 steps: where a missing warm-up can hurt


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    shape = case.get("lr_shape")
    lr: Series | None = case.get("lr")
    if shape is not None and (shape.warmup_end is not None or shape.still_warming):
        return Excluded("the learning rate does warm up")
    rates = lr.values[lr.finite] if lr is not None else np.zeros(0)
    if len(rates) >= 3 and rates[-1] > rates[0] and bool(np.all(np.diff(rates) >= 0)):
        return Excluded("the learning rate rises all along the record")
    warmup = case.knob("schedule.warmup")
    if isinstance(warmup, (int, float)) and warmup > 0 and shape is None:
        return Excluded("the config has a warm-up")
    train: Series | None = case.get("train_loss")
    onset = case.since(train.clock) if train is not None else None
    if train is None or onset is None or not len(train):
        return []
    out = []
    share = (onset - float(train.at[0])) / max(float(train.at[-1] - train.at[0]), 1e-12)
    if share > 0.2 and not (train.clock == "step" and onset < 2000):
        return Excluded("the trouble begins long after the first steps")
    if case.found("starts-late"):
        pass  # its first rows are not those of the run
    elif share <= EARLY or (train.clock == "step" and onset < 2000):
        out.append(Evidence(1.5, "the trouble begins in the first steps", "timing"))
    if shape is not None and lr is not None and shape.first >= 0.9 * shape.peak:
        out.append(Evidence(1.5, f"the rate starts at its full height ({shape.first:.3g})", "rate", (lr.place(0),)))
    elif warmup == 0:
        out.append(Evidence(1.0, "the config sets no warm-up", "rate"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    betas = case.knob("optimizer.betas")
    beta2 = betas[1] if isinstance(betas, list) and len(betas) > 1 else 0.999
    total = length_of_run(case, "steps")
    most = 20000 if total is None else max(total / 5, 10)  # a warm-up is a part of the run, not the run
    steps = int(np.clip(round(2 / max(1 - float(beta2), 1e-4)), 10, most))
    return (
        Remedy(
            f"Warm the learning rate up over {steps} steps.",
            (Edit("schedule.warmup", case.knob("schedule.warmup"), steps, "2/(1 - beta2)", "steps"),),
            "try",
            "the loss falls from the first steps without an excursion",
        ),
    )
