"""The warm-up is longer than the run.

## What happens
The learning rate climbs to its peak over more steps than the run has, so the run is trained at a fraction of
the rate it was given. Usual reasons: a warm-up counted in epochs where steps were meant (or the reverse), a
warm-up of the original recipe kept for a short run.

## How it shows
The logged rate is still rising on the last line, far below the configured one; training is slow all along.

## What else looks like this
A rate that is too low by itself (it does not rise), a run that was stopped within its warm-up (its plan is
longer than the warm-up), a schedule stepped in the wrong unit.

## When this is wrong
The rate reached half of its peak or more: then the shortened warm-up explains little.

## Fix
Warm up over at most a tenth of the run, in the unit the scheduler counts.

## Trial
The same run with the warm-up cut to a tenth: the loss must fall faster from the end of the new warm-up on.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Ma and Yarats 2019, On the adequacy of untuned warmup for adaptive optimization (arXiv:1910.04209).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._settings import against_run, like

ID = "warmup-longer-than-run"
AREA = "learning rate"
ABOUT = "learning"
EXPLAINS = (
    "stuck-from-start", "too-slow", "at-chance", "at-prior", "never-left-zero", "worse-than-trivial", "lr-off-plan",
)  # fmt: skip
SHOWS = {"warm-up-share": "high", "warm-up-declared": "high", "still-falling": "high"}
FORBIDS = {"warm-up-share": "in", "diverged": "seen", "not-finite": "seen", "collapsed": "seen"}
PROVED_BY = ("warmup-longer-than-run",)
TRIAL = "the same run with the warm-up cut to a tenth of it"


def remedies(case: Case) -> tuple[Remedy, ...]:
    known = against_run(case, "schedule.warmup")
    edits: tuple[Edit, ...] = ()
    if known is not None:
        (warmup,), total, _ = known
        old = case.knob("schedule.warmup")
        new = like(old, float(f"{old * 0.1 * total / warmup:.2g}"))
        edits = (Edit("schedule.warmup", old, new, "a tenth of the run"),)
    return (
        Remedy(
            "Warm up over a tenth of the run.", edits, "safe", "the logged rate reaches its peak at a tenth of the run"
        ),
    )
