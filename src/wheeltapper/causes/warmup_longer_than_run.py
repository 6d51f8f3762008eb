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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._settings import against_run, like, number
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "warmup-longer-than-run"
AREA = "learning rate"
EXPLAINS = (
    "stuck-from-start",
    "too-slow",
    "at-chance",
    "at-prior",
    "never-left-zero",
    "worse-than-trivial",
    "lr-off-plan",
)
PRIOR = -3.0
TRIAL = "the same run with the warm-up cut to a tenth of it"

# A linear warm-up over w of T steps ends at T/w of the peak. A tenth of the rate is where "too low" is plain
# (LR-09: forks by 3 decide); from half the peak on, the mean rate is within four of the planned one.
FAR, NEAR = 0.1, 0.5


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.found("diverged", "not-finite", "collapsed", severity="ill"):
        return Excluded("the run moved far and broke: a rate that never rose does not do that")
    shape = case.get("lr_shape")
    if shape is not None and not shape.still_warming:
        return Excluded("the logged rate is not rising at the end")
    if told := proofs(case, "warmup-longer-than-run"):  # it counts micro-steps and epochs, where both are set
        return told
    known = against_run(case, "schedule.warmup")
    if known is not None:
        (warmup,), total, unit = known
        if warmup < total:
            return Excluded(f"the warm-up ends at {warmup:g} of {total:g} {unit}")
        return _by_share(total / warmup, f"the warm-up takes {warmup:g} {unit}, the whole run {total:g}", "proof")
    progress = case.get("progress")
    peak, lr = number(case.knob("optimizer.lr")), case.get("lr")
    if shape is None or peak is None or lr is None:
        return Excluded("neither settings nor log show a warm-up that outlasts the run")
    if progress is None or progress.state != "finished":
        return Excluded("the record stops before the planned end; the warm-up may end later")
    text = f"the run ended while the rate was still rising, at {shape.last:.3g} of {peak:.3g}"
    return _by_share(shape.last / peak, text, "rate")


def _by_share(reached: float, text: str, group: str) -> Iterable[Evidence] | Excluded:
    if reached > NEAR:
        return Excluded(f"the rate reached {reached:.0%} of its peak, too much to hold a run back")
    if reached > FAR:
        return [Evidence(3.0, f"{text}: the rate reaches {reached:.0%} of its peak", "rate")]
    return [Evidence(7.0, f"{text}: the rate reaches {reached:.1%} of its peak", group)]


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
