"""The model overfits: it learns its training set, not the task.

## What happens
Training goes on lowering the loss on examples that were seen many times, while held-out examples get no
better, then worse.

## How it shows
The training loss keeps falling after the validation score turned; the gap grows; a larger data set moves
the turn later.

## What else looks like this
A learning rate that rises again (both losses worsen), a validation set that differs from the start (the
gap is there at the first evaluation), over-confidence (the loss rises, accuracy holds), EMA lag.

## When this is wrong
The training loss does not fall after the turn: then it is no overfitting, whatever the validation does.

## Fix
Keep the checkpoint of the turn; more data or augmentation, weight decay, dropout, a shorter schedule.

## Trial
Train the same recipe on half the data: the turn must come earlier. Or add augmentation: it must come later.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Our simulation of flat, autocorrelated noise: the best of 50 evaluations lies 2.2 sigma above the last
  at the median, 4.0 at the 95th percentile, and ten evaluations without a new best are seen in 99.9 % of
  flat series.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import flat_from_start
from wheeltapper.finding import Evidence, Finding, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.learned import ends_at_best
from wheeltapper.signals.statistics import badness, noise_of

ID = "overfitting"
AREA = "data"
EXPLAINS = ("declined-after-peak", "train-val-gap", "plateau", "memorised", "gap-at-guessing")
PRIOR = 0.0
BY_THEN = 0.1  # of the training loss
DECIBELS = 5.0  # of held-out PSNR: the overfitted runs of six lab seeds lose 0.1 to 1.2 (LOG.md)
BY_HEART = 0.97  # of the training items right: what labels, noise and augmentation leave a network that memorises
TRIAL = "train the same recipe on half the data: the turn must come earlier"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    train: Series | None = case.get("train_loss")
    turns = [f for f in case.found("declined-after-peak", severity="ill") if f.onset is not None]
    if case.found("memorised", severity="ill"):
        return [Evidence(4.0, "every example was seen many times and the training loss is near zero", "trend")]
    lost = case.found("gap-at-guessing", severity="ill")
    if lost and not turns:
        by_heart = lost[0].numbers["trained"] >= BY_HEART
        text = f"training items are {lost[0].numbers['trained']:.0%} right, held-out ones {lost[0].numbers['held']:.0%}"
        return [Evidence(3.0 if by_heart else 0.5, f"{text}{': known by heart' if by_heart else ''}", "trend", lost[0].places)]
    gap = case.found("train-val-gap", severity="ill")
    if gap and not turns:
        return [Evidence(3.0, gap[0].summary, "trend", gap[0].places)]
    flat = case.found("plateau", severity="ill")
    if flat and not turns and flat_from_start(train, flat[0].onset):
        return Excluded("the training loss never fell: nothing was learned, by heart or otherwise")
    if train is None or not turns:
        return [Evidence(-1.0, "no training loss to compare with", "trend")] if train is None else []
    turn = turns[0]
    clock = turn.clock or train.clock
    at = train.on(clock)  # type: ignore[arg-type]
    if at is None:
        return []
    onset = turn.onset or 0.0
    after = train.values[(at >= onset) & train.finite]
    before = train.values[(at < onset) & train.finite]
    if len(after) < 2:
        return []
    k = max(1, len(after) // 5)
    early, late = float(np.median(after[:k])), float(np.median(after[-k:]))
    if len(before):  # a jump at the turn is no fall, however much of it is made good afterwards
        early = min(early, float(np.median(before[-2 * k :])))
    out = []
    # Two medians of k rows differ by 1.25 sigma times the root of 2/k by chance.
    chance = 2.5 * noise_of(after).sigma * math.sqrt(2 / k) if len(after) >= 8 else 0.0
    if late < early - max(chance, 1e-12) and late < 0.98 * early:
        share = 1 - late / early if early > 0 else 0.0
        text = f"the training loss fell by another {share:.0%} after the validation turned"
        # A score that turns at its first evaluations and ends below them may as well never have been what is trained for.
        at_once = turn.onset_epoch is None and _at_once(case, turn)
        # What is learned by heart takes a good part off the loss; a rate that decays takes a few percent.
        out.append(
            Evidence(2.0, f"{text}, which was at once", "trend")
            if at_once
            else Evidence(4.0 if share >= BY_THEN else 2.0, text, "trend")
        )
        if turn.onset_epoch is not None and 0 < turn.onset_epoch < 0.95:
            text = f"the first pass through the data was not over (epoch {turn.onset_epoch:.2g}): nothing had been seen twice"
            out.append(Evidence(-6.0, text, "passes"))
    elif late > 1.05 * early:
        out.append(Evidence(-5.0, "the training loss rose as well: this is no overfitting", "trend"))
    elif len(before):
        out.append(Evidence(-0.5, "the training loss is flat after the turn", "trend"))
    if lost and lost[0].numbers["trained"] < BY_HEART:
        text = f"training items are {lost[0].numbers['trained']:.0%} right, not known by heart, and held-out ones {lost[0].numbers['held']:.0%}"
        out.append(Evidence(-3.0, text, "heart"))
    val: Series | None = case.get("val_loss")
    if val is not None and turn.series != val.name and ends_at_best(val):
        out.append(Evidence(-4.0, f"{val.name} ends at its best", "loss", (val.place(len(val) - 1),)))
    if _heals(case, turn):
        out.append(Evidence(-3.0, f"{turn.series} fell at once and has been coming back since", "shape"))
    score = case.run.series.get(turn.series or "")
    if score is not None and score.unit == "dB" and (lost_db := turn.numbers["best"] - turn.numbers["last"]) > DECIBELS:
        text = f"{turn.series} lost {lost_db:.2g} dB: pictures that are learned by heart cost a decibel or two"
        out.append(Evidence(-3.0, text, "size"))
    if case.found("collapsed", "at-chance"):
        out.append(Evidence(-4.0, "the metric fell back to its start, which overfitting does not do", "size"))
    return out


def _at_once(case: Case, turn: Finding) -> bool:
    """The best came within the first tenth of the record, and the end is worse than the first value."""
    series = case.run.series.get(turn.series or "")
    if series is None or "best_at" not in turn.numbers or int(series.finite.sum()) < 10:
        return False
    at, x = series.at[series.finite], badness(series.values, series.better)[series.finite]
    return turn.numbers["best_at"] <= at[0] + 0.1 * (at[-1] - at[0]) and float(np.median(x[-3:])) > float(x[0])


def _heals(case: Case, turn: Finding) -> bool:
    """The score was worst right after the turn, and at least a quarter of that fall is made good: nothing that is
    learned by heart does this."""
    series = case.run.series.get(turn.series or "")
    if series is None or turn.onset is None or series.better not in ("up", "down"):
        return False
    x = badness(series.values, series.better)
    before, after = x[series.finite & (series.at < turn.onset)], x[series.finite & (series.at >= turn.onset)]
    if len(before) < 3 or len(after) < 3 or int(np.argmax(after)) > 1:
        return False
    worst, level = float(np.max(after)), float(np.median(before[-3:]))
    return worst - level > 5 * noise_of(before).sigma and float(after[-1]) < worst - 0.25 * (worst - level)


def remedies(case: Case) -> tuple[Remedy, ...]:
    if not case.found("declined-after-peak", severity="ill"):
        text = "Hold data out and choose the length of the run by it; to go further, add data or augmentation."
        return (Remedy(text, (), "safe", "a score on held-out data shows where the turn is"),)
    return (
        Remedy(
            "Keep the checkpoint of the turn, and stop there next time; to go further, add data or augmentation.",
            (),
            "safe",
            "the validation score at the end is within noise of its best",
        ),
    )
