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

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import length_of_run

ID = "no-warmup"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = ("diverged", "not-finite", "spiked", "stuck-from-start")
SHOWS = {"no-warm-up": "high"}
TRIAL = "the first 500 steps with and without warm-up, five seeds each"


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
