"""What a model would score that learned nothing: ln C, 1/C, or what the record's first rows show.

Observed beats declared: a first loss of 4.61 beside an accuracy of 1 % says 100 classes, whatever a config says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study import Absent, derived
from wheeltapper.study.outcome import Curve

EARLY = 0.03  # of the run: before that, a first row still tells of the untrained model
ENTROPIES = ("loss", "nll")
SHARES = ("accuracy", "top5", "f1")


@dataclass(frozen=True, slots=True)
class Level:
    """The error of having learned nothing, with its uncertainty (a share of it) and where it comes from."""

    error: float
    spread: float
    how: str


@dataclass(frozen=True, slots=True)
class Choices:
    """How many answers a guess is made among."""

    count: float
    how: str
    sure: bool


def _declared(run: Run, knobs: Knobs | None) -> Choices | None:
    """As a config or a line of the log tells it."""
    for knob, fact, what in (("model.classes", "classes", "classes"), ("vocab_size", "vocab_size", "tokens")):
        size = None if knobs is None else knobs.value(knob)
        size = run.facts[fact].value if size is None and fact in run.facts else size
        if isinstance(size, int | float) and not isinstance(size, bool) and 2 <= size < 1e7:
            return Choices(float(size), f"{size:g} {what}", True)
    return None


@derived
def choices(run: Run, train_curve: Curve | None = None, knobs: Knobs | None = None) -> Choices:
    """Classes or tokens: as declared, else as the first training loss beside an accuracy shows them."""
    told = _declared(run, knobs)
    if told is not None:
        return told
    scored = any(s.quantity in SHARES for s in run.series.values())
    if scored and train_curve is not None and train_curve.share[0] <= EARLY and train_curve.series.quantity in ENTROPIES:
        count = math.exp(min(train_curve.first, 16.0))
        if 1.8 <= count <= 3e5:
            return Choices(count, f"a first loss of {train_curve.first:.3g}", False)
    raise Absent("the number of classes is not known", ("the number of classes",))


def _entropy_level(curve: Curve, choices: Choices | None) -> Level | None:
    """ln C, where the loss can be a cross-entropy over C answers: it began at most 1.6 times as high (a network whose last
    layer is not small begins there)."""
    if choices is None or curve.series.quantity not in ENTROPIES or not choices.sure:
        return None
    level = math.log(choices.count)
    if not 0.02 * level <= curve.first <= 1.6 * level:
        return None
    return Level(level, 0.02, f"ln {choices.count:g}, for {choices.how}")


def _start_level(curve: Curve) -> Level | None:
    if curve.share[0] > EARLY:
        return None
    spread = curve.noise / max(abs(curve.first), 1e-300)
    return Level(curve.first, min(0.3, 0.05 + spread), f"the first value, {curve.shown(curve.first):.4g}")


@derived
def trivial_train(train_curve: Curve, choices: Choices | None = None) -> Level:
    """What the training loss would be if nothing had been learned."""
    found = _entropy_level(train_curve, choices) or _start_level(train_curve)
    if found is None:
        raise Absent("neither classes nor a first value tell the level of an untrained model", ("the first rows of the log",))
    return found


@derived
def trivial_held(
    held_out: Curve, choices: Choices | None = None, train_curve: Curve | None = None, val_curve: Curve | None = None
) -> Level:
    """What the held-out score (else loss) would be if nothing had been learned."""
    series = held_out.series
    if series.quantity == "accuracy" and choices is not None:
        return Level(1.0 - 1.0 / choices.count, 0.02 if choices.sure else 0.1, f"1 in {choices.count:.4g}, for {choices.how}")
    if series.quantity in ("correlation",):
        return Level(1.0, 0.02, "a constant prediction explains nothing")
    found = _entropy_level(held_out, choices) or _start_level(held_out)
    if found is None and train_curve is not None and held_out is val_curve and train_curve.share[0] <= EARLY:
        found = _start_level(train_curve)
    if found is None:
        raise Absent("the level of an untrained model is not known for held-out data", ("an evaluation before training",))
    return found


def skill(curve: Curve, trivial: Level) -> tuple[float, float]:
    """1 - error / trivial error at the best stretch of the run, and its uncertainty."""
    if trivial.error <= 0:
        return 0.0, 1.0
    value = 1.0 - curve.best / trivial.error
    scatter = curve.noise / math.sqrt(max(1.0, min(len(curve) / 10, 20.0))) / trivial.error
    return value, float(np.hypot(scatter, trivial.spread * curve.best / trivial.error))
