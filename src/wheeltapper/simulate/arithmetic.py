"""The arithmetic of a run: batch, steps, units, checkpoints, throughput, time left, memory (SYS-01, SCH-06).

Counts are exact. Reported rates are intervals: a printed number stands for every number that prints so
(ST-14), and an identity is broken only if no choice within the intervals satisfies it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from wheeltapper.errors import InputError

Unit = Literal["steps", "micro_steps", "epochs", "samples", "fraction"]


def _ceil_div(a: int, b: int) -> int:
    return -(-a // b)


def effective_batch(per_device: int, accumulation: int = 1, world: int = 1) -> int:
    """Samples behind one optimizer update."""
    return per_device * accumulation * world


@dataclass(frozen=True, slots=True)
class RunLength:
    """How long a run is, in every unit. An epoch's last, incomplete accumulation window counts as an update
    if `partial_window` (HF, timm); a loop that steps on `i % accumulation == 0` drops or carries it."""

    samples: int | None  # in the data set
    batch: int  # per device and micro-step
    accumulation: int = 1
    world: int = 1
    drop_last: bool = False
    partial_window: bool = True
    epochs: float | None = None
    max_steps: int | None = None

    @property
    def global_batch(self) -> int:
        return effective_batch(self.batch, self.accumulation, self.world)

    @property
    def micro_steps_per_epoch(self) -> int | None:
        """Batches one process sees in an epoch. DistributedSampler pads each process to ⌈N/W⌉ samples."""
        if self.samples is None:
            return None
        per_process = _ceil_div(self.samples, self.world)
        return per_process // self.batch if self.drop_last else _ceil_div(per_process, self.batch)

    @property
    def steps_per_epoch(self) -> int | None:
        micro = self.micro_steps_per_epoch
        if micro is None:
            return None
        return _ceil_div(micro, self.accumulation) if self.partial_window else max(1, micro // self.accumulation)

    @property
    def total_steps(self) -> int | None:
        """Optimizer updates in the whole run; a step limit comes before the epochs."""
        if self.max_steps is not None and self.max_steps > 0:
            return self.max_steps
        per_epoch = self.steps_per_epoch
        return None if per_epoch is None or self.epochs is None else math.ceil(self.epochs * per_epoch)

    @property
    def samples_seen(self) -> int | None:
        total = self.total_steps
        return None if total is None else total * self.global_batch

    def to_steps(self, value: float, unit: Unit) -> float | None:
        """A length in optimizer updates, or None where the record does not tell the conversion.

        >>> RunLength(samples=1000, batch=10, accumulation=4, epochs=2).to_steps(100, "micro_steps")
        25.0
        """
        if unit == "steps":
            return float(value)
        if unit == "micro_steps":
            return value / self.accumulation
        if unit == "samples":
            return value / self.global_batch
        whole = self.total_steps if unit == "fraction" else self.steps_per_epoch
        return None if whole is None else value * whole


def unreachable(positions: Sequence[float], total: float) -> tuple[float, ...]:
    """Milestones the run never gets to (SCH-01): the scheduler takes `total` ticks, the last is number total."""
    return tuple(at for at in positions if at > total)


def checkpoint_steps(total: int, every: int, *, first: int | None = None, final: bool = True) -> range | list[int]:
    """The steps at which a run of `total` steps saves, counted from 1; the last step too if `final`."""
    if every < 1:
        return [total] if final else []
    steps = range(first or every, total + 1, every)
    return [*steps, total] if final and total not in steps and total > 0 else steps


def nearest_checkpoint(steps: Sequence[int], wanted: int) -> int | None:
    """The saved step closest to `wanted`, the earlier of two."""
    return min(steps, key=lambda step: (abs(step - wanted), step), default=None)


# --- printed numbers ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Interval:
    """Every value a statement allows."""

    low: float
    high: float

    def __mul__(self, other: Interval) -> Interval:
        return Interval(self.low * other.low, self.high * other.high)

    def __truediv__(self, other: Interval) -> Interval:
        return Interval(self.low / other.high, self.high / other.low if other.low > 0 else math.inf)

    def meets(self, other: Interval) -> bool:
        return self.low <= other.high and other.low <= self.high

    def widened(self, share: float) -> Interval:
        return Interval(self.low * (1 - share), self.high * (1 + share))


def exactly(value: float) -> Interval:
    return Interval(value, value)


def printed(value: float, decimals: int = 0) -> Interval:
    """What `value`, printed with so many decimals, can have been (not negative: rates and times)."""
    half = 0.5 * 10.0**-decimals
    return Interval(max(0.0, value - half), value + half)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two sides that should be equal and are not; `factors` names what the ratio could be."""

    identity: str
    left: Interval
    right: Interval
    ratio: float  # left / right, at the middle of both
    factors: tuple[str, ...] = ()


# Averages and clocks differ a little (validation, the first slow steps); a claim needs more than that.
TIMING_SLACK = 0.05


def throughput(
    *,
    samples_per_second: Interval | None = None,
    step_seconds: Interval | None = None,
    epoch_seconds: Interval | None = None,
    steps_per_epoch: int | None = None,
    samples: int | None = None,
    global_batch: int | None = None,
    factors: Mapping[str, float] | None = None,
) -> list[Mismatch]:
    """The identities of SYS-01 that the given numbers break. `factors` are candidates for the ratio, such as
    {"world size": 8, "accumulation": 4}. The time of an epoch may hold validation too, so it is only too
    short, never too long.

    >>> found = throughput(samples_per_second=printed(15000), step_seconds=printed(0.0714, 4), global_batch=2048)
    >>> found[0].identity, round(found[0].ratio, 2)
    ('samples/s × step time = global batch', 0.52)
    """
    found: list[Mismatch] = []

    def compare(identity: str, left: Interval, right: Interval, *, may_exceed: bool = False) -> None:
        wide = left.widened(TIMING_SLACK)
        if wide.meets(right) or (may_exceed and left.low > right.high):
            return
        ratio = (left.low + left.high) / (right.low + right.high)
        found.append(Mismatch(identity, left, right, ratio, name_factor(ratio, factors or {})))

    if samples_per_second and step_seconds and global_batch:
        compare("samples/s × step time = global batch", samples_per_second * step_seconds, exactly(global_batch))
    if samples_per_second and epoch_seconds and samples:
        spread = Interval(max(0.0, samples - (global_batch or 0)), samples + (global_batch or 0))
        left = samples_per_second * epoch_seconds
        compare("samples/s × epoch time = data set", left, spread, may_exceed=True)
    if step_seconds and epoch_seconds and steps_per_epoch:
        compare(
            "epoch time = steps × step time", epoch_seconds, exactly(steps_per_epoch) * step_seconds, may_exceed=True
        )
    return found


def name_factor(ratio: float, factors: Mapping[str, float]) -> tuple[str, ...]:
    """Which of the known factors, or its inverse, the ratio is, to within the timing slack."""
    named = []
    for name, factor in factors.items():
        for label, value in ((f"× {name}", factor), (f"÷ {name}", 1 / factor if factor else math.inf)):
            if factor != 1 and abs(ratio / value - 1) <= TIMING_SLACK:
                named.append(label)
    return tuple(named)


def eta_seconds(total: float, done: float, rate: float) -> float:
    """(T - t)/rate; never negative."""
    if rate <= 0:
        return math.inf
    return max(0.0, total - done) / rate


# --- memory -------------------------------------------------------------------------------------------------

# Bytes of optimizer state per parameter, on top of weights and gradients.
OPTIMIZER_STATE = {
    "sgd": 0,
    "sgd_momentum": 4,
    "lion": 4,
    "rmsprop": 4,
    "adagrad": 4,
    "adam": 8,
    "adamw": 8,
    "nadam": 8,
    "radam": 8,
    "lamb": 8,
    "adamw_8bit": 2,
    "adafactor": 0,  # rows and columns only; small against the rest
}
# (weights, gradients, float32 master copy, bytes per 4 bytes of state)
PRECISION = {
    "fp32": (4, 4, 0, 1.0),
    "amp": (4, 4, 0, 1.0),  # autocast keeps float32 weights, gradients and state
    "mixed_master": (2, 2, 4, 1.0),  # 16-bit weights and gradients with a float32 master copy (DeepSpeed, apex O2)
    "megatron": (2, 4, 4, 1.0),  # the same with float32 gradient accumulation
    "pure_16bit": (2, 2, 0, 0.5),
}


def bytes_per_parameter(optimizer: str, precision: str = "fp32", *, ema: bool = False) -> float:
    """Weights + gradients + optimizer state (+ float32 EMA), without activations.

    >>> bytes_per_parameter("adamw"), bytes_per_parameter("adamw", "mixed_master")
    (16.0, 16.0)
    """
    if optimizer not in OPTIMIZER_STATE or precision not in PRECISION:
        raise InputError(
            f"no memory figures for {optimizer} in {precision}.",
            do=f"Optimizers: {', '.join(OPTIMIZER_STATE)}; precisions: {', '.join(PRECISION)}.",
        )
    weights, gradients, master, scale = PRECISION[precision]
    state = OPTIMIZER_STATE[optimizer]
    held = state if optimizer.endswith("8bit") else state * scale
    return float(weights + gradients + master + held + (4 if ema else 0))


def checkpoint_bytes(parameters: float, optimizer: str = "adamw", *, ema: bool = False, weight_bytes: int = 4) -> float:
    """A file with weights, optimizer state and perhaps an EMA: 12 bytes a parameter for Adam in float32."""
    return parameters * (weight_bytes + OPTIMIZER_STATE[optimizer] + (4 if ema else 0))


def sampler_coverage(world: int) -> float:
    """Share of the data seen in an epoch if every process shuffles by its own seed and takes its 1/W of it.

    >>> round(sampler_coverage(8), 3), sampler_coverage(1)
    (0.656, 1.0)
    """
    return float(1 - (1 - 1 / world) ** world)
