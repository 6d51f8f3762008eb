"""The loss scale has collapsed and no update is taken any more.

## What happens
Every backward pass overflows, so the scaler skips every update and halves the scale, without a lower bound. The
weights no longer change: the loss stands where it was. Small gradients vanish when a pass gets through at last.

## How it shows
The scale falls below 1 or by ten halvings and more, and from there on the loss is flat, or equal row by row.

## What else looks like this
fp16 overflow that breaks the weights (the loss itself rises or turns NaN), the search for a scale at the start (it
ends after a dozen halvings at most), a scaler that is switched off (exactly 1 throughout).

A backward pass that divides by zero collapses the scale as well: the scaler tries every scale, and none helps.

## When this is wrong
The loss goes on falling: updates are taken. The run is in bf16 or fp32: the scale means nothing there.

## Fix
bf16; or find the operation whose output is not finite in the forward pass and keep it in fp32.

## Trial
Replay one step from before the collapse in fp32: if the loss is finite there, it is the range of fp16.

## References
- PyTorch, torch/amp/grad_scaler.py.
- DeepSpeed, deepspeed/runtime/fp16/loss_scaler.py (deepspeedai/DeepSpeed).
- fairseq, fairseq/optim/dynamic_loss_scaler.py (facebookresearch/fairseq).
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "loss-scale-collapse"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = (
    "scale-collapse", "high-skip-rate", "constant-metric", "plateau", "diverged", "collapsed",
    "declined-after-peak",
)  # fmt: skip
SHOWS = {"scale-collapse": "seen", "loss-scale-fall": "high"}
TRIAL = "replay one step from before the collapse in fp32 and in fp16"
# A gradient that overflows fp16 at this scale is larger than 65504 / 2^-10 = 7e7.
LOWEST_SCALE = 2.0**-10


def at_any_scale(scale: Series | None, train: Series | None) -> str:
    """Why the gradients are not finite whatever the scale; nothing: the range of fp16 may be what they leave.

    A scaler that has gone far below 1 has tried every scale at which an honest gradient fits. If the loss is finite all
    the while, the forward pass is, too: what is left is a backward pass that divides by zero (the root of zero does).
    """
    if scale is None or train is None or not scale.finite.any() or not train.finite.any():
        return ""
    last = float(scale.values[scale.finite][-1])
    late = train.values[-max(3, len(train) // 10) :]
    if not 0 < last < LOWEST_SCALE or not np.all(np.isfinite(late)):
        return ""
    return (
        f"at a scale of {last:.2g} only gradients beyond {65504 / last:.1g} overflow, and the loss is finite: "
        "they are not finite at any scale, in bf16 neither"
    )


def remedies(case: Case) -> tuple[Remedy, ...]:
    if at_any_scale(case.get("loss_scale"), case.get("train_loss")):
        text = (
            "Find the operation whose gradient is not finite and keep it away from zero (a root, a division, a norm): "
            "one step under torch.autograd.detect_anomaly() names it. bf16 does not help."
        )
        return (Remedy(text, (), "safe", "the gradient norm is finite, and the scale stays where it starts"),)
    edits = (Edit("precision", "fp16", "bf16", "the range of fp32"),) if case.knob("precision") == "fp16" else ()
    return (
        Remedy(
            "Go back to the checkpoint before the collapse and train in bf16.",
            edits,
            "try",
            "the loss moves again from the first steps",
        ),
    )
