"""Clipping, loss weights, accumulation, averages and checkpoints: cures that are there already, or cannot be had."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.judge.folk.blame import poor, worse
from wheeltapper.judge.model import RuledOut
from wheeltapper.rules.causes import Case
from wheeltapper.rules.causes._look import ends, series_like, settings_like
from wheeltapper.rules.causes._settings import adaptive, number, updates
from wheeltapper.simulate.ema import first_copy_weight

STEADY = 10.0  # a norm that never leaves ten times its median did not explode: explosions are powers of ten
NO_CHANGE = 0.05  # a weight within 5 % of its value moves the loss less than its own noise


def _clip(case: Case) -> RuledOut | None:
    """Clipping as a cure where it is on, and where the gradients are steady."""
    threshold = number(case.knob("clip.norm"))
    if threshold is None or case.knob("clip.enabled") is False or not worse(case):
        return None
    if any("clip" in f"{f.id} {f.summary}" for f in case.audit):
        return None  # whether it is done at all is in doubt, and said elsewhere
    norm = case.get("grad_norm")
    if norm is not None and len(norm.values[norm.finite]) >= 10 and bool(norm.finite.all()):
        x, levels = norm.values, ends(norm)
        middle, highest = float(np.median(x)), float(x.max())
        if highest > STEADY * middle or levels is None or levels[1] > 2 * levels[0]:
            return None
        acts = float(np.mean(x > threshold))
        told = "never reaches it" if acts == 0 else f"is above it in {acts:.0%} of the rows"
        return RuledOut(
            "clip-as-cure",
            "The gradients explode: clip them, or clip harder",
            f"their norm is {middle:.3g} at the median and {highest:.3g} at most; clipping at {threshold:g} is on already, and the norm {told}",
        )
    if not adaptive(case):
        return None
    return RuledOut(
        "clip-as-cure",
        "Clip the gradients, or clip harder, to make the steps gentler",
        f"clipping at {threshold:g} is on already; a smaller threshold clips more, and {case.knob('optimizer.name')} divides by the size "
        "of the gradient, so its steps stay as long as the learning rate says",
    )


def _loss_weights(case: Case) -> RuledOut | None:
    """Loss weights that change during training, where what they do can be told."""
    if not case.knob("loss.dynamic_weights") or not poor(case):
        return None
    title = "The loss weights that change during training make it unstable, or too sluggish"
    logged = series_like(case.run, r"dynamic_weight|loss_weight|weight_l_")
    if logged:
        values = np.concatenate([s.values[s.finite] for s in logged])
        low, high = float(values.min()), float(values.max())
        if high - low > NO_CHANGE * abs(float(np.median(values))):
            return None
        return RuledOut(
            "loss-weights-shift",
            title,
            f"they stay between {low:.4f} and {high:.4f} all along: the loss is changed by {max(abs(high - 1), abs(low - 1)):.2%} at most",
        )
    rates = [
        v for leaf in settings_like(case.run, r"dynamic_loss_scheduling\.adaptation_rate$") if (v := number(leaf.value))
    ]
    if not rates or 2 * rates[0] > NO_CHANGE:
        return None
    return RuledOut(
        "loss-weights-shift",
        title,
        f"with adaptation_rate {rates[0]:g} a factor is 1 ± {2 * rates[0]:g} at most, and is computed anew from 1 at every step: the bounds "
        "min_weight and max_weight are out of its reach",
    )


def _accumulated(case: Case) -> RuledOut | None:
    told = [f for f in case.audited("accumulation-not-implemented") if f.grade == "is"]
    batch = number(case.knob("batch.per_device"))
    if not told:
        return None
    each = f" of {batch:g}" if batch else ""
    return RuledOut(
        "accumulated-gradients",
        "Errors of accumulated gradients add up",
        f"nothing is accumulated: gradients are cleared and the optimizer steps at every micro-batch{each}",
    )


def _resume_unread(case: Case) -> RuledOut | None:
    """A resume that the program never makes, as the way back to the good checkpoint."""
    told = [
        f for f in case.audited("option-never-used", "resume-never-loaded") if re.search(r"resume", f.summary, re.I)
    ]
    if not told:
        return None
    file = next((str(leaf.value) for leaf in settings_like(case.run, r"resume") if leaf.value), "")
    return RuledOut(
        "resume-unread",
        "Resume from the checkpoint before the trouble" + (f" ({file})" if file else ""),
        "the program never loads it: the option is read and used by nothing, so the run would begin anew",
    )


def _resume_at_peak(case: Case) -> RuledOut | None:
    """Going back to a best moment of which nothing was saved."""
    peaks = [
        f.onset for f in case.found("declined-after-peak", "collapsed") if f.clock == "step" and f.onset is not None
    ]
    first, told = _first_saved(case)
    if not peaks or first is None or min(peaks) >= first:
        return None
    return RuledOut(
        "resume-at-peak",
        f"Resume from the checkpoint of step {min(peaks):,.10g}, where it was best",
        f"there is none: {told}",
    )


def _first_saved(case: Case) -> tuple[float | None, str]:
    """The step of the first checkpoint, by what was written, else by the settings."""
    written = [c.step for c in case.run.checkpoints if c.step is not None]
    if written:
        return float(min(written)), f"the first that was written is of step {min(written):,.10g}"
    every = case.knobs.get("checkpoint.every") if case.knobs is not None else None
    if case.run.checkpoints or every is None or every.default or not number(every.value):
        return None, ""
    interval = updates(case, float(every.value), every.unit)
    return interval, f"one is saved every {interval:,.0f} steps" if interval else ""


def _batch_norm_of_average(case: Case) -> RuledOut | None:
    """Batch-norm statistics blamed for an average that is still the first weights."""
    told = [f for f in case.audited("ema-horizon-too-long") if f.grade == "is" and {"decay", "every"} <= set(f.numbers)]
    blamed = case.audited("ema-buffers-not-averaged")
    if not told or not blamed:
        return None
    decay, every = told[0].numbers["decay"], told[0].numbers["every"]
    at = _updates_done(case)
    if at is None:
        return None
    left = first_copy_weight(decay, int(at / every))
    if left < 0.5:
        return None
    return RuledOut(
        "batch-norm-of-average",
        "The average scores badly because its batch-norm statistics are wrong",
        f"after {at:,.0f} updates {decay:g}^{at / every:,.0f} = {left:.1%} of the average is still the first, untrained weights: no "
        "statistics make a trained network of them; the statistics come second",
    )


def _updates_done(case: Case) -> float | None:
    progress = case.get("progress")
    if progress is None or progress.at is None:
        return None
    if progress.clock == "step":
        return float(progress.at)
    return updates(case, float(progress.at), "epochs") if progress.clock == "epoch" else None


def _average_on_one_rank(case: Case) -> RuledOut | None:
    if not case.audited("ema-on-one-rank") or not poor(case):
        return None
    return RuledOut(
        "average-on-one-rank",
        "The average is updated by one process only, so it is wrong under data-parallel training",
        "after every update all processes hold the same weights, so one average is the average of all; only that process may evaluate "
        "and save it",
    )


RULES = (
    _clip,
    _loss_weights,
    _accumulated,
    _resume_unread,
    _resume_at_peak,
    _batch_norm_of_average,
    _average_on_one_rank,
)
