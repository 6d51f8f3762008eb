"""Averaged weights: the decay each implementation really applies, and how old the average is (EMA-01..13).

".9999" says little by itself: some implementations ramp the decay, some copy first, some update every tenth
step. The honest numbers are the weight still on the first copy and the mean age in optimizer updates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.reading.record import Floats, Ints
from wheeltapper.simulate.plan import refuse_endless

# What happens to buffers (batch-norm statistics): copied from the live model at each update, averaged like
# weights, left as they were at the first copy, or not held (the live model's are used).
Buffers = Literal["copied", "averaged", "frozen", "live"]


@dataclass(frozen=True, slots=True)
class EmaPlan:
    """An average after `updates` optimizer updates."""

    kind: str
    updates: int
    decays: Floats  # one per EMA update; 0 is a copy
    at: Ints  # the optimizer update (from 0) after which each happened
    first_copy_weight: float  # share of the average still on its last plain copy
    first_copy_at: int  # the update that copy was made after; -1: the initial weights
    mean_age: float  # of the averaged weights, in optimizer updates
    buffers: Buffers

    @property
    def horizon(self) -> float:
        """Steady mean age β/(1-β) at the last decay, in optimizer updates."""
        if not len(self.decays):
            return math.inf
        last = float(self.decays[-1])
        spacing = (self.at[-1] - self.at[0]) / max(1, len(self.at) - 1) if len(self.at) > 1 else 1.0
        return math.inf if last >= 1 else float(last / (1 - last) * spacing)

    @property
    def age_share(self) -> float:
        """Mean age as a share of the run so far."""
        return self.mean_age / self.updates if self.updates else 0.0


Decay = Callable[[int, int], float]  # (EMA update from 0, optimizer update from 0) -> decay


def _averaged_model(decay: float = 0.999) -> Decay:
    return lambda k, t: 0.0 if k == 0 else decay


def _swa() -> Decay:
    return lambda k, t: k / (k + 1)


def _constant(decay: float = 0.9999) -> Decay:
    return lambda k, t: decay


def _ramp(steps: float, inv_gamma: float, power: float) -> float:
    return float(1 - (1 + steps / inv_gamma) ** -power)


def _timm_v3(
    decay: float = 0.9999,
    min_decay: float = 0.0,
    update_after_step: int = 0,
    use_warmup: bool = False,
    warmup_gamma: float = 1.0,
    warmup_power: float = 2 / 3,
) -> Decay:
    def value(k: int, t: int) -> float:
        step = t - update_after_step  # timm passes t + 1 and subtracts 1
        if step <= 0:
            return 0.0
        return max(min(_ramp(step, warmup_gamma, warmup_power), decay), min_decay) if use_warmup else decay

    return value


def _ema_pytorch(
    beta: float = 0.9999,
    update_after_step: int = 100,
    inv_gamma: float = 1.0,
    power: float = 2 / 3,
    min_value: float = 0.0,
) -> Decay:
    copied: set[int] = set()

    def value(k: int, t: int) -> float:
        if t <= update_after_step:
            return 0.0
        if not copied or t in copied:  # the first update after the wait starts with a copy
            copied.add(t)
            return 0.0
        return min(max(_ramp(t - update_after_step, inv_gamma, power), min_value), beta)

    return value


def _diffusers(
    decay: float = 0.9999,
    min_decay: float = 0.0,
    update_after_step: int = 0,
    use_ema_warmup: bool = False,
    inv_gamma: float = 1.0,
    power: float = 2 / 3,
) -> Decay:
    def value(k: int, t: int) -> float:
        step = k - update_after_step  # optimization_step is k + 1 here, and 1 is subtracted
        if step <= 0:
            return 0.0
        ramp = _ramp(step, inv_gamma, power) if use_ema_warmup else (1 + step) / (10 + step)
        return max(min(ramp, decay), min_decay)

    return value


def _torch_ema(decay: float = 0.9999, use_num_updates: bool = True) -> Decay:
    return lambda k, t: min(decay, (2 + k) / (11 + k)) if use_num_updates else decay


def _edm(batch_size: int, ema_halflife_kimg: float = 500, ema_rampup_ratio: float | None = 0.05) -> Decay:
    def value(k: int, t: int) -> float:
        half = ema_halflife_kimg * 1000
        if ema_rampup_ratio is not None:
            half = min(half, t * batch_size * ema_rampup_ratio)
        return float(0.5 ** (batch_size / max(half, 1e-8)))

    return value


def power_of_std(std: float) -> float:
    """EDM2's exponent γ for a relative width, e.g. 0.10 -> 6.94."""
    roots = np.roots([1, 7, 16 - std**-2, 12 - std**-2])
    return float(roots.real.max())


def _edm2(std: float = 0.10) -> Decay:
    gamma = power_of_std(std)
    return lambda k, t: float((t / (t + 1)) ** (gamma + 1))


def _edm2_traditional(batch_size: int, halflife_Mimg: float = math.inf, rampup_ratio: float | None = 0.09) -> Decay:
    def value(k: int, t: int) -> float:
        half = halflife_Mimg * 1e6
        if rampup_ratio is not None:
            half = min(half, (t + 1) * batch_size * rampup_ratio)
        return float(0.5 ** (batch_size / max(half, 1e-8)))

    return value


def _k_diffusion(inv_gamma: float = 1.0, power: float = 1.0, min_value: float = 0.0, max_value: float = 1.0) -> Decay:
    return lambda k, t: min(max(_ramp(k, inv_gamma, power), min_value), max_value)


def _ultralytics(decay: float = 0.9999, tau: float = 2000) -> Decay:
    return lambda k, t: decay * (1 - math.exp(-(k + 1) / tau))


IMPLEMENTATIONS: dict[str, tuple[Callable[..., Decay], Buffers]] = {
    "torch": (_averaged_model, "copied"),  # use_buffers=True averages them
    "torch_swa": (_swa, "copied"),
    "timm_v2": (_constant, "averaged"),
    "timm_v3": (_timm_v3, "averaged"),  # exclude_buffers copies them
    "ema_pytorch": (_ema_pytorch, "averaged"),
    "diffusers": (_diffusers, "live"),
    "torch_ema": (_torch_ema, "live"),
    "sedd": (_torch_ema, "live"),
    "edm": (_edm, "frozen"),
    "edm2": (_edm2, "copied"),
    "edm2_traditional": (_edm2_traditional, "copied"),
    "k_diffusion": (_k_diffusion, "copied"),
    "ultralytics": (_ultralytics, "averaged"),
    "basicsr": (_constant, "frozen"),
    "openai": (_constant, "frozen"),
    "constant": (_constant, "averaged"),
}


def simulate_ema(
    kind: str,
    n: int,
    *,
    every: int = 1,
    at: Sequence[int] | Ints | None = None,
    buffers: Buffers | None = None,
    **params: float | bool | None,
) -> EmaPlan:
    """The average after n optimizer updates, updated after every `every`-th of them (or after those in `at`).

    >>> plan = simulate_ema("torch", 6250, at=[625 * e + b for e in range(10) for b in range(0, 625, 10)],
    ...                     decay=0.9999)
    >>> len(plan.decays), round(plan.first_copy_weight, 3)
    (630, 0.939)
    """
    if kind not in IMPLEMENTATIONS:
        raise InputError(f"no EMA implementation named {kind!r}.", do=f"One of: {', '.join(IMPLEMENTATIONS)}.")
    make, policy = IMPLEMENTATIONS[kind]
    try:
        decay = make(**params)
    except TypeError as error:
        raise InputError(f"the {kind} EMA cannot be built: {error}.") from None
    refuse_endless(n // max(every, 1) if at is None else len(at))
    where = np.arange(0, n, every) if at is None else np.asarray(at, dtype=np.int64)
    decays = np.array([decay(k, int(t)) for k, t in enumerate(where)], dtype=np.float64)
    zeros = np.nonzero(decays == 0.0)[0]
    since = int(zeros[-1]) + 1 if len(zeros) else 0
    # The initial weights are one update older than what update 0 left.
    age, before = 0.0, -1
    for t, d in zip(where.tolist(), decays.tolist(), strict=True):
        age = d * (age + (t - before))
        before = t
    return EmaPlan(
        kind=kind,
        updates=n,
        decays=decays,
        at=where.astype(np.int64),
        first_copy_weight=float(np.prod(decays[since:])),
        first_copy_at=int(where[zeros[-1]]) if len(zeros) else -1,
        mean_age=age + max(0, n - 1 - before),
        buffers=buffers or policy,
    )


def half_life(decay: float, every: int = 1) -> float:
    """Updates after which half of the weight has moved on: ln 2 / -ln β, times the interval.

    >>> round(half_life(0.9999)), round(half_life(0.999))
    (6931, 693)
    """
    return math.inf if decay >= 1 else math.log(2) / -math.log(decay) * every if decay > 0 else 0.0


RAMPED = {"ema-pytorch"}  # averages whose decay rises as a power of the updates


def first_copy_weight(decay: float, ema_updates: int, power: float | None = None) -> float:
    """β^T: what a constant decay leaves on the weights it began with. With `power`, the decay ramps up as
    1 - (1 + k)^-power, as ema-pytorch's does; a ramp that steep (10 is at 0.99998 after two updates) is none.

    >>> round(first_copy_weight(0.9999, 400), 2), round(first_copy_weight(0.9999, 400, 10), 2)
    (0.96, 0.96)
    >>> round(first_copy_weight(0.9999, 400, 0.75), 2)
    0.0
    """
    if not power:
        return float(decay**ema_updates)
    steps = np.arange(1, min(ema_updates, 1_000_000) + 1)
    return float(np.exp(np.log(np.minimum(decay, 1 - (1.0 + steps) ** -float(power))).sum()))


def decay_for_age(mean_age: float, every: int = 1) -> float:
    """The constant decay whose steady mean age is `mean_age` optimizer updates.

    >>> decay_for_age(9999.0)
    0.9999
    """
    age = mean_age / every
    return age / (1 + age)


def rescaled_decay(decay: float, batch_ratio: float) -> float:
    """The decay that keeps the horizon in samples when the batch grows `batch_ratio`-fold: β^κ (EMA-03)."""
    return float(decay**batch_ratio)
