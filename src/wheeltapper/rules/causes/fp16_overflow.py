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

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "fp16-overflow"
AREA = "precision"
ABOUT = "crash"
EXPLAINS = ("not-finite", "scale-collapse", "diverged", "spiked")
SHOWS = {"not-finite-share": "high", "loss-scale-fall": "high"}
TRIAL = "replay the step before the onset in fp16, bf16 and fp32, one batch: minutes"


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
