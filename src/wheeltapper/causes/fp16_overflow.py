"""A value overflowed in half precision.

## What happens
fp16 ends at 65504. An activation, a sum or a gradient beyond it becomes infinite, the next operation makes it NaN, and
without a loss scaler (or with one that cannot help, because the overflow is in the forward pass) it reaches the weights.

## How it shows
NaN within one step while the loss was calm; the loss scale falls first; the same step passes in bf16 or fp32.

## What else looks like this
A true divergence rises over several steps; a bad batch gives NaN in fp32 too.

## When this is wrong
The run is in fp32 or bf16, which has the range of fp32. A high or rising loss scale is health, not overflow.

## Fix
bf16 where the hardware has it; else find the operation and keep it in fp32.

## Trial
Replay the step before the NaN in fp16, bf16 and fp32, one batch: minutes.

## References
- PyTorch, torch/amp/grad_scaler.py.
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- pytorch/pytorch issue 99640 (a scale below 1).
- huggingface/transformers issues 9295 and 10956 (T5 in fp16).
- state-spaces/mamba issue 6 (weights kept in bf16).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import at_any_scale, before_nan
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "fp16-overflow"
AREA = "precision"
EXPLAINS = ("not-finite", "scale-collapse", "diverged", "spiked")
PRIOR = -1.5
TRIAL = "replay the step before the onset in fp16, bf16 and fp32, one batch: minutes"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    precision = case.knob("precision")
    scale: Series | None = case.get("loss_scale")
    if precision in ("fp32", "bf16", "tf32"):
        return Excluded(f"the run is in {precision}, which has the range of fp32")
    broken = case.found("not-finite", severity="ill")
    train: Series | None = case.get("train_loss")
    out = before_nan(train, case.since(train.clock, "not-finite")) if broken and train is not None else []
    if precision == "fp16":
        out.append(Evidence(1.0, "the run is in fp16", "precision"))
    if why := at_any_scale(scale, train):
        out.append(Evidence(-2.0, why, "range"))
    elif case.found("scale-collapse"):
        out.append(
            Evidence(3.0, case.found("scale-collapse")[0].summary, "scale", case.found("scale-collapse")[0].places)
        )
    elif scale is not None and (onset := case.since(scale.clock)) is not None:
        out += _scale_before(scale, onset, bool(broken))
    said = [e for e in case.run.events if e.kind == "overflow"]
    if said:
        out.append(Evidence(1.0, f"the log reports overflows ({sum(e.count for e in said)})", "messages"))
    if broken and precision is None and scale is None:
        out.append(Evidence(-0.5, "nothing shows that half precision was used", "precision"))
    return out


def _scale_before(scale: Series, onset: float, nan: bool) -> list[Evidence]:
    before = scale.values[(scale.at < onset) & scale.finite]
    if len(before) < 3:
        return []
    fell = float(np.log2(max(before[-1], 1e-30) / max(float(np.max(before[-20:])), 1e-30)))
    if fell <= -2:
        return [Evidence(2.0, f"the loss scale halved {-fell:.0f} times just before", "scale")]
    if fell >= 0:
        # An overflow in the forward pass makes the loss infinite without a word from the scale before.
        text = "the loss scale stood still or rose up to the onset: no gradient overflowed"
        return [Evidence(-0.5 if nan else -1.5, text, "scale")]
    return []


def remedies(case: Case) -> tuple[Remedy, ...]:
    edits = (
        (Edit("precision", "fp16", "bf16", "bf16 has the range of fp32"),) if case.knob("precision") == "fp16" else ()
    )
    return (
        Remedy(
            "Train in bf16, or keep the operation that overflows in fp32.",
            edits,
            "try",
            "no value turns infinite at the onset",
        ),
    )
