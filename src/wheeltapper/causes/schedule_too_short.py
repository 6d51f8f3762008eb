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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._settings import against_run, number
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "schedule-too-short"
AREA = "schedule"
EXPLAINS = ("lr-rises-again", "lr-gone-early", "declined-after-peak", "slow-rise", "too-slow", "lr-off-plan")
PRIOR = -1.5
TRIAL = "step the scheduler alone as often as the run does, and look at its last values"

WASTED = 0.2  # of the run below 1 % of the peak (SCH-14)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    lr, shape = case.get("lr"), case.get("lr_shape")
    short = _too_short(case)
    if shape is None or lr is None:
        return [Evidence(4.0, short, "settings")] if short else Excluded("no learning rate is logged")
    match = case.get("lr_match")
    if match is not None and match.verdict == "paced" and match.time_factor > 1:
        return Excluded(f"{match.why}: its length is right, its pace is not")
    if shape.restarts:
        return Excluded("the rate restarts by jumps, as planned restarts and resumes do")
    out = []
    if shape.rises_from is not None and shape.last >= 0.1 * shape.peak:
        turned = [f.onset for f in case.found("declined-after-peak", severity="ill") if f.clock == lr.clock]
        early = [t for t in turned if t is not None and t < shape.rises_from - 0.05 * float(lr.at[-1] - lr.at[0])]
        if early and not case.found("lr-rises-again", severity="ill"):
            return Excluded(f"the score turned at {lr.clock} {early[0]:,.10g}, before the rate did at {shape.rises_from:,.10g}")
        text = f"the rate climbs again from {lr.clock} {shape.rises_from:,.10g} on, to {shape.last:.3g}: a cosine past its end"
        out.append(Evidence(6.0, text, "rate", (lr.place(min(int((lr.at < shape.rises_from).sum()), len(lr) - 1)),)))
        if short:
            out.append(Evidence(8.0, f"{short}; the rate climbs again from {lr.clock} {shape.rises_from:,.10g} on", "proof"))
        return out
    if shape.low_from is not None and not shape.cuts:  # two cuts by ten are a step schedule at work
        share = float(lr.at[-1] - shape.low_from) / max(float(lr.at[-1] - lr.at[0]), 1e-12)
        onset = case.since(lr.clock)
        if share >= WASTED and (onset is None or onset >= shape.low_from):
            out.append(Evidence(3.0, f"the rate is below 1 % of its peak for the last {share:.0%}", "rate"))
            if short:
                out.append(Evidence(7.0, short, "proof"))
    return out or Excluded("the rate neither rises again nor dies early")


def _too_short(case: Case) -> str:
    for knob in ("schedule.t_max", "schedule.total"):
        known = against_run(case, knob)
        if known is not None and known[0][0] < 0.9 * known[1]:
            return f"the schedule is laid out for {known[0][0]:g} {known[2]}, the run takes {known[1]:g}"
    return ""


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
