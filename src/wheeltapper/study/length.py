"""How long the run was, in updates, epochs and samples, and the rates it was trained with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wheeltapper.reading.record import ClockName, Floats
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study import Absent, derived

SCALE_FREE = ("adam", "lamb", "lion", "rmsprop", "adagrad", "adadelta", "adafactor", "prodigy", "sophia", "shampoo", "soap", "muon", "adan", "novograd", "ranger")


@dataclass(frozen=True, slots=True)
class Length:
    """Updates that were made and updates that were planned; either may be unknown."""

    done: float | None
    planned: float | None
    per_epoch: float | None
    epochs: float | None

    @property
    def updates(self) -> float | None:
        return self.planned or self.done


def count_of(value: object) -> float | None:
    """A setting that counts something; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value) or value <= 0:
        return None
    return float(value)


@derived
def length(run: Run, clock_ends: dict[ClockName, float], knobs: Knobs | None = None) -> Length:
    """Updates and epochs, from the record first, from the settings second."""

    def said(fact: str, knob: str) -> float | None:
        return count_of(run.fact(fact)) or (None if knobs is None else count_of(knobs.value(knob)))

    logged = said("steps_per_epoch", "run.steps_per_epoch")
    per_epoch = logged if logged and logged > 1 else _from_data(knobs)  # one: epochs that are called steps
    epochs = said("total_epochs", "run.epochs") or clock_ends.get("epoch")
    planned = _updates(said("total_steps", "run.total_steps"), epochs, per_epoch)
    if planned is None and per_epoch and epochs:
        planned = per_epoch * epochs
    done = _updates(clock_ends.get("step"), epochs, per_epoch)
    if done is None and per_epoch and "epoch" in clock_ends:
        done = per_epoch * clock_ends["epoch"]
    if done is None and planned is None and epochs is None:
        raise Absent("the length of the run is not known", ("steps or epochs",))
    return Length(done, planned, per_epoch, epochs)


def _updates(steps: float | None, epochs: float | None, per_epoch: float | None) -> float | None:
    """Steps as updates, unless a program that logs once an epoch calls its epochs steps."""
    return None if steps is not None and epochs and steps <= epochs + 1 and per_epoch != 1 else steps


def _from_data(knobs: Knobs | None) -> float | None:
    if knobs is None:
        return None
    samples, batch = count_of(knobs.value("data.train_size")), batch_of(knobs)
    return max(1.0, np.ceil(samples / batch)) if samples and batch else None


def batch_of(knobs: Knobs) -> float | None:
    """Samples of one update over all devices, as far as the settings say."""
    whole = count_of(knobs.value("batch.global"))
    each = count_of(knobs.value("batch.per_device"))
    if whole is not None or each is None:
        return whole
    return each * (count_of(knobs.value("batch.accumulation")) or 1.0) * (count_of(knobs.value("world_size")) or 1.0)


@dataclass(frozen=True, slots=True)
class Rates:
    """The learning rate over the share of the run that had passed, as logged; else one value, as set."""

    share: Floats
    values: Floats
    logged: bool
    clock: str | None = None
    series: Series | None = None

    @property
    def peak(self) -> float:
        return float(np.max(self.values))

    @property
    def first(self) -> float:
        return float(self.values[0])

    @property
    def last(self) -> float:
        return float(self.values[-1])

    @property
    def peak_at(self) -> float:
        """The share of the run at which the peak was first nearly reached."""
        return float(self.share[int(np.argmax(self.values >= 0.99 * self.peak))])

    def mean(self) -> float:
        """Mean over the run."""
        if len(self.values) < 2:
            return self.peak
        return float(np.interp(np.linspace(self.share[0], self.share[-1], 400), self.share, self.values).mean())


@derived
def rates(clock_ends: dict[ClockName, float], lr: Series | None = None, knobs: Knobs | None = None) -> Rates:
    """Observed beats declared: the logged rate, else the one that was set."""
    if lr is not None:
        good = lr.finite & np.isfinite(lr.at) & (lr.values >= 0)
        if good.sum() >= 2 and float(lr.values[good].max()) > 0:
            at = np.maximum.accumulate(lr.at[good])
            end = max(clock_ends.get(lr.clock, 0.0), float(at[-1]), 1e-300)
            return Rates(at / end, lr.values[good], True, lr.clock, lr)
    told = None if knobs is None else count_of(knobs.value("schedule.max_lr")) or count_of(knobs.value("optimizer.lr"))
    if told is None:
        raise Absent("the learning rate is neither logged nor set", ("lr",))
    return Rates(np.asarray([0.0, 1.0]), np.asarray([told, told]), False)


@derived
def scale_free(knobs: Knobs) -> bool:
    """Whether the optimizer's step is independent of the size of the gradient (Adam and its kin)."""
    name = knobs.value("optimizer.name")
    if isinstance(name, str):
        return any(word in name.lower() for word in SCALE_FREE)
    if count_of(knobs.value("optimizer.momentum")) is not None:
        return False
    if knobs.value("optimizer.betas") is not None:
        return True
    raise Absent("the optimizer is not named", ("the optimizer",))


FINE = ("finetune.from", "model.lora_rank", "lora.alpha", "dpo.beta")


@derived
def from_scratch(run: Run, knobs: Knobs | None = None) -> bool:
    """Whether the weights start untrained: nothing says that a trained model is tuned further."""
    if knobs is not None and any(knobs.get(knob) is not None and knobs.value(knob) for knob in FINE):
        return False
    return not any("reward" in s.raw.lower() and s.quantity != "return" for s in run.series.values())
