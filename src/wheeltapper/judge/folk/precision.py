"""Loss scales and number formats, misread."""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.judge.folk.blame import poor
from wheeltapper.judge.model import RuledOut
from wheeltapper.rules.causes import Case
from wheeltapper.simulate.scaler import SCALERS, TORCH, Scaler, skip_bounds

SMALLEST = 2.0**-24  # the smallest number above zero in fp16
LARGEST = 65504.0  # the largest


def _scaler_of(case: Case) -> Scaler:
    """The scaler of the framework that wrote the record; torch's where it names none."""
    named = " ".join([*case.run.formats, "" if case.knobs is None else case.knobs.dialect.NAME]).lower()
    return next((scaler for name, scaler in SCALERS.items() if name in named), TORCH)


def _last_power(case: Case) -> tuple[int, int] | None:
    """The last loss scale as a power of two above the first one, and the step; None where it is none."""
    scale = case.get("loss_scale")
    if scale is None or scale.clock != "step":
        return None
    last = float(scale.values[scale.finite][-1])
    if last <= _scaler_of(case).init or not math.isfinite(last) or case.found("scale-collapse"):
        return None
    power = math.log2(last)
    if abs(power - round(power)) > 1e-4:  # logs print five digits
        return None
    return round(power), int(scale.at[-1])


def _high_scale(case: Case) -> RuledOut | None:
    known = _last_power(case)
    if known is None:
        return None
    power, steps = known
    scaler = _scaler_of(case)
    text = (
        f"a scale of 2^{power} is not an explosion: it starts at 2^{round(math.log2(scaler.init))} ({scaler.init:,.0f}), doubles after "
        f"{scaler.interval} clean steps and halves on each overflow"
    )
    bounds = skip_bounds(scaler, steps, 2.0**power)
    if bounds.possible:
        text += f"; at most {bounds.high} overflows in {steps:,} steps bring it there"
    text += f". Exploding gradients would make it fall: in the last update none was above {LARGEST / 2.0**power:.2g}"
    return RuledOut("high-loss-scale", "The loss scale is huge, so gradients explode", text)


def _scale_of_one(case: Case) -> RuledOut | None:
    scale = case.get("loss_scale")
    if scale is None or not np.all(scale.values[scale.finite] == 1.0):
        return None
    return RuledOut(
        "loss-scale-one",
        "The loss scale is stuck at 1, so fp16 has collapsed",
        "the scaler is off (bf16 or fp32): a disabled scaler reports exactly 1 at every step",
    )


def _fp16_to_blame(case: Case) -> RuledOut | None:
    known = _last_power(case)
    if known is None or not poor(case) or case.found("not-finite", "high-skip-rate"):
        return None
    power, _ = known
    return RuledOut(
        "fp16-imprecise",
        "fp16 loses small gradients, bf16 is more precise",
        f"with a scale of 2^{power} the smallest gradient that fp16 keeps is 2^-24 / 2^{power} = {SMALLEST / 2.0**power:.2g}, and nothing "
        "overflowed for good; bf16 has more range and less precision (8 significant bits against 11), and range is not short here",
    )


RULES = (_high_scale, _scale_of_one, _fp16_to_blame)
