"""A fixed loss scale is used in half precision.

## What happens
A fixed scale cannot react: too high, and gradients overflow without a step being skipped; too low, and small gradients
vanish. A dynamic scaler searches the largest scale that works.

## How it shows
The logged loss scale is the same small number on every line while training is in fp16 and unstable.

## What else looks like this
A disabled scaler reports exactly 1 (bf16, fp32); a dynamic one that found its level changes now and then.

## When this is wrong
The run is in bf16 or fp32.

## Fix
Use dynamic loss scaling, or bf16.

## Trial
The first hundred steps with dynamic scaling: they must be stable where the fixed scale was not.

## References
- PyTorch, torch/amp/grad_scaler.py.
- bigscience-workshop/bigscience, experiments/gpt2-meg-ds-3d: one job, stable with a dynamic scale and
  diverged with a fixed one.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series

ID = "static-loss-scale"
AREA = "precision"
EXPLAINS = ("diverged", "not-finite", "spiked", "slow-rise", "stuck-from-start")
PRIOR = -3.0
GROWTH = 2000  # steps; the longest of the usual growth intervals: torch and apex 2000, DeepSpeed and Megatron 1000
TRIAL = "the first hundred steps with dynamic loss scaling, same data and seed"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    scale: Series | None = case.get("loss_scale")
    if case.knob("precision") in ("bf16", "fp32", "tf32"):
        return Excluded(f"the run is in {case.knob('precision')}: its loss scale does nothing")
    if scale is None:
        fixed = case.knob("amp.static_scale")
        if not fixed:
            return Excluded("no fixed loss scale is known")
        return [Evidence(4.0, f"the config fixes the loss scale at {fixed:g}", "fixed")]
    values = scale.values[scale.finite]
    if len(values) < 10 or np.ptp(values) > 0 or values[0] == 1.0:
        return Excluded("the loss scale moves, or no scaler is at work")
    power = np.log2(values[0])
    odd = abs(power - round(power)) > 1e-6
    if not odd and scale.clock == "step" and float(scale.at[-1] - scale.at[0]) <= GROWTH:
        return Excluded(
            f"a dynamic scaler without overflows stands still for {GROWTH} steps, and so long is not recorded"
        )
    out = [
        Evidence(
            3.0, f"the loss scale is {values[0]:g} on all {len(values)} lines: it is fixed", "fixed", (scale.place(0),)
        )
    ]
    if odd:
        out.append(Evidence(1.5, f"{values[0]:g} is no power of two, so no dynamic scaler set it", "value"))
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Use dynamic loss scaling, or bf16.",
            (),
            "try",
            "the loss scale moves, and the loss falls from the first steps",
        ),
    )
