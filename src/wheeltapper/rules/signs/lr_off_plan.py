"""The logged learning rate is not the one that the configuration plans.

## What it sees
A learning rate in the log that no honest way of counting or logging brings onto the planned curve: another
pace, a constant factor, or a first position from which the two part.

## Why it matters
What was declared is not what was done. A schedule that runs at eight times its pace is over after an eighth
of the run; one that is stepped by the wrong unit never leaves its warm-up.

## How it decides
The schedule is built from the settings, only for frameworks whose schedule is known exactly, and simulated
tick by tick. Conventions of logging (counted from 0 or 1, before or after the step, epoch means, rounding)
are tried first, and so is a lag of a few ticks by skipped updates: those are Clear. Another pace is a
watch. A constant factor is a note, because another parameter group may have been logged. A difference
counts from 5 % of the peak on, at three values or more: below that, versions of a framework differ. The
settings must give the rate themselves; where only a framework's default is known, there is no claim.
Where they name a schedule without fixing all of it, two things are still impossible in a finished run, and make
it ill: a schedule that moves by its nature and a rate that stood still below half of the one set, and a warm-up
that still rises at twice its length.

## When it is wrong
The configuration beside the log is not the one the run was started with, or the run was resumed with another.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch Lightning, core/module.py and core/optimizer.py (Lightning-AI/pytorch-lightning).
- timm, train.py and timm/scheduler (huggingface/pytorch-image-models).
- Accelerate, src/accelerate/scheduler.py (huggingface/accelerate).
- Diffusers, examples/text_to_image/train_text_to_image.py (huggingface/diffusers).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.simulate.compare_lr import LrMatch
from wheeltapper.simulate.lr_shape import LrShape
from wheeltapper.simulate.plan import Plan, logged
from wheeltapper.study.progress import Progress

ID = "lr-off-plan"
LIVE = True


FAR = 0.05  # of the peak
MOVING = ("cosine", "cycle", "linear", "poly", "exponential")  # schedules that never stand still over a whole run


def look(
    run: Run,
    knobs: Knobs,
    lr: Series,
    lr_shape: LrShape,
    progress: Progress,
    lr_plan: Plan | None = None,
    lr_match: LrMatch | None = None,
) -> Answer:
    if lr_plan is None or lr_match is None:
        return _by_shape(knobs, lr, lr_shape, progress)
    match = lr_match
    rates = [knobs[name] for name in ("optimizer.lr", "optimizer.lr_base", "schedule.max_lr") if name in knobs]
    if all(rate.default for rate in rates):
        return Unknown("the settings do not give the learning rate", ("the configuration of the run",))
    if match.verdict == "cannot tell":
        return Unknown(match.why, ("lr by step",))
    if match.verdict in ("matches", "shifted"):
        return Clear(match.why)
    if match.verdict == "scaled":
        text = f"the logged learning rate is {match.ratio:.4g} times the planned one throughout ({lr_plan.name}, peak {lr_plan.peak:.4g})"
        return seen(ID, lr, text, severity="note", grade="is", onset=0, ratio=match.ratio)
    if match.verdict == "paced":
        names = f" ({' or '.join(match.factor_names)})" if match.factor_names else ""
        text = f"the learning rate runs at {match.time_factor:.4g} times the planned pace{names}: {match.compared} values fit {lr_plan.name} so"
        return seen(ID, lr, text, severity="watch", grade="is", onset=0, pace=match.time_factor)
    if match.first_mismatch is None or match.expected is None or match.got is None:
        return Clear(match.why)
    index = int(np.argmin(np.abs(lr.at - match.first_mismatch)))
    far = _farthest(lr, lr_plan, match)
    resumed = any(s.kind == "resume" and s.start <= match.first_mismatch for s in run.segments)
    if len(lr) - index < 3:
        return Clear(f"only the last {len(lr) - index} values differ from the plan")
    if far < FAR:
        return Clear(f"differs from the plan by {far:.1%} of its peak: {match.why}")
    text = (
        f"the learning rate leaves its plan ({lr_plan.name}) at {where(lr, index)}: "
        f"{match.expected:.4g} was planned, {match.got:.4g} is logged" + (", after a resume" if resumed else "")
    )
    return seen(
        ID, lr, text, severity="watch", grade="is" if index >= 3 and not resumed else "suspected", onset=index,
        planned=match.expected, logged=match.got,
    )  # fmt: skip


def _by_shape(knobs: Knobs, lr: Series, shape: LrShape, progress: Progress) -> Answer:
    """Where the settings name a schedule and not every number of it: what no reading of them allows."""
    name, rate = knobs.get("schedule.name"), knobs.get("optimizer.lr")
    peak = rate.value if rate is not None and not rate.default and isinstance(rate.value, (int, float)) else None
    if name is None or name.default or peak is None or peak <= 0 or len(lr) < 10:
        return Unknown("the settings do not give the schedule", ("the schedule of the learning rate",))
    if progress.state != "finished" or progress.clock != lr.clock or (progress.share or 0.0) < 0.98:
        return Unknown("the run has not reached its planned end", ("the rest of the run",))
    moves = any(word in str(name.value).lower().replace("_", "") for word in MOVING)
    if shape.peak == 0:
        return Unknown("the rate is 0 on every row, as a small one is that is printed with few digits", ("more digits of lr",))
    if moves and shape.kind == "constant":
        low = shape.last < 0.5 * peak
        text = f"the settings name a {name.value} schedule of {peak:.4g}, and the rate is {shape.last:.4g} on all {shape.n} rows"
        return seen(
            ID, lr, text, severity="ill" if low else "watch", grade="is", onset=0, planned=peak, logged=shape.last
        )
    warmup = knobs.get("schedule.warmup")
    unit = {"steps": "step", "epochs": "epoch"}.get(str(warmup.unit)) if warmup is not None else None
    if warmup is None or warmup.default or unit != lr.clock or not isinstance(warmup.value, (int, float)):
        return Unknown("the length of the warm-up is not known", ("the schedule of the learning rate",))
    if shape.still_warming and lr.at[-1] > 2 * warmup.value and shape.last < 0.9 * peak:
        text = f"the warm-up was to end at {unit} {warmup.value:g}, and at {where(lr, len(lr) - 1)} the rate still rises ({shape.last:.4g} of {peak:.4g})"
        pace = (shape.last / peak) * warmup.value / float(lr.at[-1])
        return seen(ID, lr, text, severity="ill", grade="is", onset=int(np.argmax(lr.at > warmup.value)), pace=pace)
    return Clear("nothing in the shape of the rate contradicts the settings")


def _farthest(lr: Series, plan: Plan, match: LrMatch) -> float:
    """The largest deviation in shares of the peak, under the counting that suits best."""
    assert match.expected is not None
    assert match.got is not None
    if {"steps": "step", "micro_steps": "micro_step", "epochs": "epoch"}.get(plan.unit) != lr.clock:
        return abs(match.got - match.expected) / plan.peak
    each = [np.abs(logged(plan, lr.at + shift) - lr.values) for shift in (-1, 0, 1)]
    return min(float(np.nanmax(gap)) for gap in each if np.isfinite(gap).any()) / plan.peak


_HF = "max_steps: 200\nlearning_rate: 0.001\nlr_scheduler_type: linear\nwarmup_steps: 0\nper_device_train_batch_size: 8\nlogging_steps: 1\n"
_NAMED = "lr: 0.26\nscheduler: onecycle\nwarmup_epochs: 8\nepochs: 40\nbatch_size: 64\n"
CASES = {
    "finding": {"lr": [1e-3 * max(0.0, 1 - i / 50) for i in range(200)], "config": _HF},
    "clear": {"lr": [1e-3 * (1 - i / 200) for i in range(200)], "config": _HF},
    "unknown": {"lr": [1e-3] * 10},
    "named schedule, rate that stands": {"lr": [0.01] * 40, "config": _NAMED, "clock": "epoch", "start": 1, "expect": "ill"},
    "still warming at five times the length": {
        "lr": [0.01 + 0.005 * i for i in range(40)], "config": _NAMED, "clock": "epoch", "start": 1, "expect": "ill",
    },
    "a small rate printed as 0": {"lr": [0.0] * 40, "config": _NAMED, "clock": "epoch", "start": 1, "expect": "unknown"},
    "named schedule, followed": {
        "lr": [0.26 * min((i + 1) / 8, (40 - i) / 32) for i in range(40)], "config": _NAMED, "clock": "epoch",
        "start": 1, "expect": "clear",
    },
}  # fmt: skip
