"""The learning rate is too high for this model, batch and stage.

## What happens
Steps overshoot: past a threshold set by the curvature the loss grows instead of falling, and the optimizer
leaves the region it had found. Often it happens at the peak of the schedule, at the end of the warm-up.

## How it shows
Loss or metric breaks near the highest learning rate so far; the gradient norm rises first; a twin run with
a lower rate is stable.

## What else looks like this
fp16 overflow (the loss scale falls first), a bad batch or shard (a single step, without a rise of norms
before it), missing warm-up (in the first steps), a resume that lost the optimizer state.

## When this is wrong
"Lower the rate" is the standard answer and often wrong: runs have diverged at a lower rate and been stable
at a higher one. One run cannot prove it.

## Fix
Halve the rate, or lengthen the warm-up; clip at the 90th percentile of the norms of the quiet part.

## Trial
Fork before the onset with the rate at 1, 1/2 and 1/4, same data and seed; the control must break again.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- Cohen et al. 2021, Gradient Descent on Neural Networks Typically Occurs at the Edge of Stability
  (arXiv:2103.00065).
- Wu et al. 2018, Understanding Short-Horizon Bias in Stochastic Meta-Optimization (arXiv:1803.02021).
- wandb/senpai issues 2873, 3072 and 3152 (a lower rate that diverged where a higher one did not).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import before_nan, fell, scale_fell_first, through, weights_live
from wheeltapper.causes._settings import adaptive, starts_low, usual_rate
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import running_median

ID = "lr-too-high"
AREA = "learning rate"
EXPLAINS = (
    "barely-learned",
    "above-start",
    "diverged",
    "not-finite",
    "collapsed",
    "at-chance",
    "stuck-from-start",
    "constant-metric",
    "plateau",
    "spiked",
    "declined-after-peak",
    "grad-norm-growth",
    "slow-rise",
    "val-swings",
    "policy-leaps",
    "lost-at-the-peak",
    "scale-collapse",
)
PRIOR = 0.0
TRIAL = "fork before the onset with the learning rate at 1, 1/2 and 1/4, same data and seed, five of each"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    lr = case.get("lr")
    breaks = ("not-finite", "diverged", "spiked", "above-start", "collapsed")
    broke = breaks if case.found(*breaks, severity="ill") else ()
    chance = case.found("at-chance", severity="ill")
    never = (chance and not chance[0].numbers.get("fell")) or case.found(
        "barely-learned", "stuck-from-start", "constant-metric", severity="ill"
    )
    if never and not case.found("diverged", "not-finite", "collapsed", "above-start", severity="ill"):
        return _from_the_start(case)
    broken = case.found("not-finite", "diverged", "collapsed", "spiked", severity="ill")
    if broken and all((f.series or "").startswith(("val/", "test/")) and f.id == "not-finite" for f in broken):
        return Excluded("only a validation loss is not finite; the training loss is stable")
    if whole := weights_live(case):
        return Excluded(whole)
    out = []
    onset = case.since(lr.clock, *broke) if lr is not None else None
    train: Series | None = case.get("train_loss")
    if starts_low(case) and train is not None and _never_fell(train):
        # In a warm-up the first steps are small ones, and a loss falls before any rate can make it rise.
        return [
            Evidence(-2.5, "the loss rose from its first rows on, before the rate could do harm", "start"),
            *_beyond(case),
        ]
    if (hump := case.found("lost-at-the-peak", severity="ill")) and not case.found("not-finite", "diverged", "collapsed", severity="ill"):
        return [Evidence(3.5, hump[0].summary, "timing", hump[0].places), *_beyond(case)]
    began = case.since(train.clock) if train is not None else None
    if not case.found("not-finite", "diverged", "spiked", "above-start", severity="ill") and (course := through(train, began)):
        text = f"the training loss {course} {'on' if course == 'falls' else 'its level'} through the onset: the optimizer is stable"
        return [Evidence(-4.0, text, "shape")] if course == "falls" else [Evidence(-2.0, text, "shape"), *_beyond(case)]
    sudden = bool(case.found("not-finite", severity="ill")) and not case.found("diverged", "spiked")
    if lr is not None and onset is not None and lr.finite.sum() >= 3:
        timing = _at_the_peak(lr, onset)
        if sudden:
            # A NaN out of the blue comes at any rate: where it comes says little.
            timing = [replace(e, bits=min(e.bits, 0.5)) for e in timing]
        out += timing
    if case.found("diverged", "spiked", severity="ill"):
        out.append(Evidence(0.5, "the loss itself broke, not only the validation score", "shape"))
    fell_at = case.since(train.clock, *broke) if train is not None else None
    calm: list[Evidence] = []
    if case.found("not-finite", severity="ill") and train is not None and fell_at is not None:
        # What speaks for one bad step speaks against the rate, and the other way round.
        calm = [replace(e, bits=-e.bits, text=f"{e.text} it turned NaN" if e.bits > 0 else e.text) for e in before_nan(train, fell_at)]
        out += calm
    if not case.found("diverged", "not-finite", "collapsed", "spiked", "at-chance") and (fell(train) or 0.0) > 0.05:
        out.append(Evidence(-3.0, "the training loss keeps falling: the optimizer is stable", "shape"))
    borne = lr is not None and onset is not None and _borne(lr, onset)
    if lr is None and train is not None and fell_at is not None:  # not logged: a warm-up seldom takes a third of a run
        borne = fell_at - float(train.at[0]) > 0.35 * float(train.at[-1] - train.at[0])
    borne = borne or (train is not None and fell_at is not None and _at_its_lowest(train, fell_at))
    if sudden and any(e.bits < 0 for e in calm) and borne:
        out.append(Evidence(-1.0, "the run had long been calm at this rate and higher ones", "level"))
    else:
        out += [replace(e, bits=min(e.bits, max(1.0, e.bits - 1.5))) if borne else e for e in _beyond(case)]
    if lr is not None and train is not None and _rises_as_the_rate_falls(train, lr, began):
        out.append(Evidence(-2.0, "the loss goes on rising while the rate falls to less than half of what it was", "falls"))
    clip = case.knob("clip.norm")
    if case.knobs is not None and not clip:
        out.append(Evidence(0.5, "gradients are not clipped", "clip"))
    if case.found("discriminator-wins", severity="ill"):
        out.append(Evidence(-2.0, "the discriminator has won, which harms the generator at any rate", "opponent"))
    if case.found("scale-collapse"):
        out.append(Evidence(-2.5 if scale_fell_first(case) else -1.0, "the loss scale collapsed, which fp16 overflow explains by itself", "precision"))
    return out


def _from_the_start(case: Case) -> list[Evidence]:
    """A rate can be so high that nothing is ever learned; then it is high by any standard of its optimizer."""
    norm: Series | None = case.get("grad_norm")
    dead = norm is not None and norm.finite.any() and float(norm.values[norm.finite][-1]) == 0.0
    if dead and (high := _beyond(case)):
        return [
            *high,
            Evidence(
                2.0, "the gradient is zero at the end: steps that large leave units behind that never answer", "dead"
            ),
        ]
    high = _beyond(case)
    train: Series | None = case.get("train_loss")
    if train is not None and through(train, float(train.at[0])) == "falls":
        return [*high, Evidence(-2.0, "the training loss falls from the first row to the last", "shape")]
    return high or [Evidence(-2.0, "it never learned anything, rather than losing it", "shape")]


def _beyond(case: Case) -> list[Evidence]:
    """A rate that no recipe of this kind of optimizer has."""
    lr: Series | None = case.get("lr")
    peak = float(np.nanmax(lr.values)) if lr is not None and lr.finite.any() else case.knob("optimizer.lr")
    if isinstance(peak, (int, float)) and peak > (1e-2 if adaptive(case) else 2.0):
        # A little beyond is a small model's rate; ten times beyond is no recipe's.
        bits = min(1.5 + 1.5 * math.log10(peak / (1e-2 if adaptive(case) else 2.0)), 4.0)
        return [Evidence(bits, f"the rate reaches {peak:.2g}, beyond what this kind of optimizer is run with", "level")]
    if isinstance(peak, (int, float)) and adaptive(case) is None and peak > 0.1:
        return [Evidence(0.7, f"the rate reaches {peak:.2g}: only plain SGD is run with that", "level")]
    return []


def _rises_as_the_rate_falls(train: Series, lr: Series, onset: float | None) -> bool:
    """A loss that a high rate drove up stays up or comes down when the rate falls; it does not climb on, step for step."""
    if onset is None or lr.clock != train.clock:
        return False
    good = train.finite & (train.at >= onset)
    thirds = np.array_split(train.values[good], 3)
    rates = lr.values[lr.finite & (lr.at >= onset)]
    if len(thirds[0]) < 3 or len(rates) < 3 or not 0 < rates[-1] < 0.5 * rates[0]:
        return False
    levels = [float(np.median(third)) for third in thirds]
    return levels[2] - levels[1] > 0.5 * (levels[1] - levels[0]) > 0


def _borne(lr: Series, onset: float) -> bool:
    """Whether the run had spent half of its time before the onset at this rate or higher ones: what it bore for that
    long is not what broke it in one step."""
    before = lr.values[(lr.at <= onset) & lr.finite]
    return len(before) >= 3 and float(np.mean(before[:-1] >= 0.9 * before[-1])) >= 0.5


def _at_its_lowest(train: Series, onset: float) -> bool:
    """Thirty rows and more, and the last of them nearly as good as any (three quarters of the gain kept): what is about to break does not improve up to the row
    before."""
    before = train.values[(train.at < onset) & train.finite]
    if len(before) < 30:
        return False
    level = running_median(before, 5)
    return float(level[-1]) <= float(level.min()) + 0.25 * float(level[0] - level.min())


def _never_fell(train: Series) -> bool:
    x = train.values[train.finite]
    return len(x) >= 5 and float(running_median(x, 5).min()) >= 0.95 * float(np.median(x[:3]))


def _at_the_peak(lr: Series, onset: float) -> list[Evidence]:
    values, at = lr.values, lr.at
    before = at <= onset
    if not before.any():
        return []
    now = float(values[before][-1])
    peak = float(np.nanmax(values))
    so_far = float(np.nanmax(values[before]))
    if peak <= 0:
        return []
    rising = len(values[before]) >= 3 and now > 1.5 * float(values[before][0])
    if now >= 0.9 * so_far and rising and not _borne(lr, onset):
        return [Evidence(2.5, f"it broke at the highest rate so far ({now:.3g}), at the top of the warm-up", "timing")]
    # A rate that stands at its peak most of the time says nothing by being there.
    if now >= 0.9 * peak and not _borne(lr, onset):
        return [Evidence(1.0, f"it broke while the rate was at its peak ({now:.3g})", "timing")]
    if now < 0.2 * peak:
        return [Evidence(-2.0, f"the rate had fallen to {now / peak:.0%} of its peak by then", "timing")]
    # Higher rates were survived: as long at 1.1 times this rate or more as a tenth of the time before the onset.
    if now < 0.95 * so_far and float(np.mean(values[before] > 1.05 * now)) > 0.1:
        return [Evidence(-1.5, f"rates up to {so_far:.3g} had been survived; it broke at {now:.3g}", "timing")]
    return []


def _how_far(case: Case, rate: float) -> tuple[float, str]:
    """By how much to cut the rate, as far as the run tells, and why."""
    lr: Series | None = case.get("lr")
    onset = case.since(lr.clock) if lr is not None else None
    if lr is not None and onset is not None and (lr.at <= onset).any():
        now, peak = float(lr.values[lr.at <= onset][-1]), float(np.nanmax(lr.values))
        if 0 < now < 0.5 * peak and int(np.nanargmax(lr.values)) > int((lr.at <= onset).sum()) - 1:
            return 2 * peak / now, f"half of {now:.2g}, where it broke on the way up"
    # Of an optimizer that is not known no usual rate is known either.
    if adaptive(case) is not None and _beyond(case) and usual_rate(case) < 0.5 * rate:
        return rate / usual_rate(case), "what runs of this length are run with: no recipe has a rate like this one"
    learned = case.found("diverged", "collapsed", "spiked", "declined-after-peak", "slow-rise")
    if not learned and case.found("at-chance", "barely-learned", "above-start", severity="ill"):
        return 10.0, "a tenth: it never learned at this rate"
    return 2.0, "half the rate"


def remedies(case: Case) -> tuple[Remedy, ...]:
    rate = case.knob("optimizer.lr")
    edits: tuple[Edit, ...] = ()
    text = "Halve the learning rate and start again, at the latest from a checkpoint before the onset."
    if isinstance(rate, (int, float)) and rate > 0:
        factor, why = _how_far(case, float(rate))
        edits = (Edit("optimizer.lr", rate, float(f"{rate / factor:.3g}"), why),)
        if factor > 2:
            text = f"Cut the learning rate to {rate / factor:.3g} ({why}) and start again."
    return (Remedy(text, edits, "try", "the loss passes the onset without leaving its band"),)
