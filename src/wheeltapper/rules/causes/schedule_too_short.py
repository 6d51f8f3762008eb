"""The schedule is shorter than the run.

## What happens
The schedule was laid out for fewer steps than the run takes. Past its end torch's cosine climbs back up to the
peak, and others stay at almost nothing: the rest of the run undoes what was won, or learns nothing more.

## How it shows
The logged rate turns up again after a smooth decay, and the score worsens with it; or the rate lies below 1 %
of its peak for a fifth of the run and more while the loss stands still.

## What else looks like this
Warm restarts (planned, and the rate jumps rather than climbs), a resume that starts the schedule anew (a jump at
the resume), overfitting (the rate is still falling when validation turns).

## When this is wrong
The score had turned before the rate did; or a cool-down at a low rate was planned.

## Fix
Lay the schedule out for the whole run, counted in what the scheduler is stepped by.

## Trial
Step the scheduler alone as often as the run does: milliseconds. Then continue from the turn with a rate that falls.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import against_run, number

ID = "schedule-too-short"
AREA = "schedule"
ABOUT = "learning"
EXPLAINS = ("lr-rises-again", "lr-gone-early", "declined-after-peak", "slow-rise", "too-slow", "lr-off-plan")
SHOWS = {"schedule-fullness": "high"}
FORBIDS = {"schedule-fullness": "low"}
PROVED_BY = ("cosine-rises-again", "scheduler-stepped-in-init")
TRIAL = "step the scheduler alone as often as the run does, and look at its last values"


def _by_the_log(case: Case) -> tuple[Edit, ...]:
    """Where the settings do not say what the length counts, the log does: it turned there, and should have here."""
    shape, lr, progress = case.get("lr_shape"), case.get("lr"), case.get("progress")
    old = number(case.knob("schedule.t_max"))
    if shape is None or lr is None or progress is None or old is None or shape.rises_from is None:
        return ()
    start = shape.warmup_end or float(lr.at[0])
    if progress.total is None or progress.clock != lr.clock or not start < shape.rises_from < progress.total:
        return ()
    new = round(old * (progress.total - start) / (shape.rises_from - start))
    return (Edit("schedule.t_max", case.knob("schedule.t_max"), new, "the length of the run, by the logged rate"),)


def remedies(case: Case) -> tuple[Remedy, ...]:
    edits: tuple[Edit, ...] = ()
    for knob in ("schedule.t_max", "schedule.total"):
        known = against_run(case, knob)
        if known is not None and known[0][0] < 0.9 * known[1]:
            old = case.knob(knob)
            new = round(old * known[1] / known[0][0])
            edits = (*edits, Edit(knob, old, new, "the length of the run"))
    edits = edits or _by_the_log(case)
    return (
        Remedy(
            "Lay the schedule out for the whole run; keep the checkpoint before the rate turned.",
            edits,
            "safe",
            "the logged rate falls to its end and stays",
        ),
    )
