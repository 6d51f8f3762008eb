"""Learning rate, warm-up and milestones, blamed for what came before them or never was."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.judge.folk.blame import POOR, poor_score, worse
from wheeltapper.judge.model import RuledOut
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import messages_like, settings_like
from wheeltapper.rules.causes._settings import length_of_run, number, updates
from wheeltapper.simulate.lr_fit import quantum
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.schedules import simulate

HALF = 0.5  # of the nominal rate: below it the nominal one says little about what was done


def _cut_after_the_trouble(case: Case) -> RuledOut | None:
    """What comes later is no cause: the trouble is there before the first cut of the rate."""
    begun = _beginning(case)
    milestones = case.knobs.get("schedule.milestones") if case.knobs is not None else None
    if begun is None or milestones is None or not isinstance(milestones.value, list):
        return None
    clock, onset = begun
    cuts = [float(m) for m in milestones.value if number(m)]
    first = min(cuts, default=None)
    if first is not None and clock == "step":
        first = updates(case, first, milestones.unit)
    elif milestones.unit != "epochs":
        return None
    if first is None or onset >= first:
        return None
    where = " and ".join(f"{m:,.10g}" for m in cuts[:3])
    return RuledOut(
        "cut-too-early",
        f"The learning rate is cut too early or too hard (at {where})",
        f"the trouble is there at {clock} {onset:,.10g}, and the first cut comes at {clock} {first:,.10g}: what comes later is no cause",
    )


def _beginning(case: Case) -> tuple[str, float] | None:
    """Where the trouble begins: its clock and position, the first of several."""
    onsets = [
        (f.clock, f.onset)
        for f in case.found(*POOR)
        if f.severity != "note" and f.onset is not None and f.clock in ("step", "epoch")
    ]
    return min(onsets, key=lambda o: o[1], default=None) if len({c for c, _ in onsets}) == 1 else None


def _longer_warmup(case: Case) -> RuledOut | None:
    told = case.audited("warmup-longer-than-run")
    if not told:
        return None
    numbers = told[0].numbers
    return RuledOut(
        "longer-warmup",
        "A longer warm-up would steady the run",
        f"the warm-up takes {numbers['warmup']:,.0f} updates and the run has {numbers['total']:,.0f}: it ends before its warm-up does, and "
        "a longer one only lowers the rates it is trained at",
    )


def _rate_that_never_acted(case: Case) -> RuledOut | None:
    nominal, lr = number(case.knob("optimizer.lr")), case.get("lr")
    if nominal is None or lr is None or not worse(case):
        return None
    highest = float(lr.values[lr.finite].max())
    if not 0 < highest < HALF * nominal:
        return None
    return RuledOut(
        "rate-never-reached",
        f"The learning rate of {nominal:g} is too high",
        f"it was never used: the highest logged rate is {highest:.3g}, {highest / nominal:.0%} of it",
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    """The tick of the plan behind the first logged rate."""

    plan: Plan
    tick: int


def _first_rate_of_an_epoch(case: Case) -> RuledOut | None:
    """A rate logged at the end of an epoch, read as the one the schedule began with."""
    lr, per_epoch = case.get("lr"), number(case.run.fact("steps_per_epoch"))
    if lr is None or per_epoch is None or lr.clock != "epoch" or len(lr) < 3:
        return None
    placed = _end_of_first_epoch(case, int(per_epoch))
    if placed is None:
        return None
    start, seen = float(placed.plan.lr()[0]), float(lr.values[0])
    ahead = placed.tick - int(per_epoch)
    return RuledOut(
        "rate-of-an-epoch's-end",
        f"The schedule starts at {seen:.3g} instead of {start:.3g}",
        f"it starts at {start:.3g}; {seen:g} is the rate at the end of epoch 1, after {placed.tick:,} of {placed.plan.total or placed.plan.n:,.0f} steps"
        + (f" ({ahead} more than the loop made)" if ahead else ""),
    )


def _end_of_first_epoch(case: Case, per_epoch: int) -> _Placed | None:
    """Where the whole log agrees with the plan at ends of epochs, and its first rate with no start."""
    lr = case.get("lr")
    plan = case.get("lr_plan") or _one_cycle(case, per_epoch)
    if plan is None or plan.unit != "steps" or not math.isfinite(float(plan.lr()[0])):
        return None
    rounding = quantum(lr.values)
    if abs(float(lr.values[0]) - float(plan.lr()[0])) <= 0.05 * float(plan.lr()[0]):
        return None
    for ahead in (0, 1, 2):
        ticks = np.round(lr.at * per_epoch).astype(np.int64) + ahead
        if (
            int(lr.at[0]) == 1
            and ticks.max() <= plan.n
            and np.all(np.abs(plan.lr()[ticks] - lr.values) <= rounding + 1e-9)
        ):
            return _Placed(plan, int(ticks[0]))
    return None


def _one_cycle(case: Case, per_epoch: int) -> Plan | None:
    """A one-cycle schedule whose warm-up is given in epochs; whether that is how the code joins them, the log decides."""
    name = str(case.knob("schedule.name") or "").lower().replace("_", "")
    peak, epochs = (
        number(case.knob("schedule.max_lr")) or number(case.knob("optimizer.lr")),
        number(case.knob("run.epochs")),
    )
    if "onecycle" not in name or peak is None or epochs is None or case.knobs is None:
        return None
    warm = case.knobs.get("schedule.warmup")
    share = number(case.knob("schedule.pct_start"))
    if share is None and warm is not None and warm.unit == "epochs" and number(warm.value):
        share = float(warm.value) / epochs
    if share is None or share >= 1:
        return None
    total = int(epochs * per_epoch)
    return simulate("torch.OneCycleLR", total - 1, lr=peak, max_lr=peak, total_steps=total, pct_start=share)


def _pre_step(case: Case) -> RuledOut | None:
    told = case.audited("scheduler-stepped-in-init")
    warned = messages_like(case.run, r"lr_scheduler\.step\(\).{0,20}before.{0,20}optimizer\.step")
    scaled = case.get("loss_scale") is not None or str(case.knob("precision")) == "fp16"
    if not told and not (warned and scaled):
        return None
    if not told:
        return RuledOut(
            "scheduler-warning",
            "The warning about lr_scheduler.step() shows a broken schedule",
            "with a loss scaler it comes from a skipped first update: the schedule is then one step ahead, which no rate shows",
        )
    overrun = case.audited("onecycle-overrun")
    return RuledOut(
        "pre-step-harmless",
        "Stepping the scheduler once before training removes the warning, and is harmless",
        "that call is itself the scheduler before the optimizer, which the warning is about"
        + ("; and it makes the last batch of the run one step too many, which raises ValueError" if overrun else ""),
    )


def _average_against_schedule(case: Case) -> RuledOut | None:
    """An average is read off the weights; unless it is copied back, it changes nothing in their training."""
    decay, every = number(case.knob("ema.decay")), number(case.knob("ema.every")) or 1.0
    total = length_of_run(case, "steps")
    if decay is None or decay >= 1 or total is None or not poor_score(case) or case.audited("ema-horizon-too-long"):
        return None
    horizon = every / (1 - decay)
    name = str(case.knob("schedule.name") or "")
    switched = any(number(leaf.value) for leaf in settings_like(case.run, r"ema_switch"))
    if horizon > 0.1 * total or not name or "constant" in name.lower() or switched:
        return None
    return RuledOut(
        "average-against-schedule",
        f"An average of the weights (decay {decay:g}) does not go with {name}: it stops the learning",
        f"it remembers about {horizon:,.0f} of {total:,.0f} updates ({horizon / total:.1%}): it lags by so much and is never put back into "
        "the weights, so it cannot slow them; and a rate that falls makes it lag less",
    )


RULES = (
    _cut_after_the_trouble,
    _longer_warmup,
    _rate_that_never_acted,
    _first_rate_of_an_epoch,
    _pre_step,
    _average_against_schedule,
)
