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

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import at_any_scale
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series

ID = "loss-scale-collapse"
AREA = "precision"
EXPLAINS = ("scale-collapse", "high-skip-rate", "constant-metric", "plateau", "diverged", "collapsed", "declined-after-peak")
PRIOR = -2.0
TRIAL = "replay one step from before the collapse in fp32 and in fp16"

MANY = 10  # halvings: 65536 to 64; steady overflow gives one in 2000 steps (AMP-05)


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.knob("precision") in ("bf16", "fp32", "tf32"):
        return Excluded(f"the run is in {case.knob('precision')}: its loss scale does nothing")
    fell = case.found("scale-collapse")
    if not fell or fell[0].onset is None:
        return Excluded("the loss scale did not collapse, or is not logged")
    level, last = fell[0].numbers.get("level", 0.0), fell[0].numbers.get("last", 0.0)
    halvings = np.log2(level / last) if level > 0 and last > 0 else 0.0
    if last >= 1.0 and halvings < MANY:
        return Excluded(f"the scale ends at {last:g}, {halvings:.0f} halvings down: updates still get through")
    broken = [f for f in case.found("not-finite", severity="ill") if f.onset is not None and f.clock == fell[0].clock]
    if broken and min(f.onset or 0.0 for f in broken) < fell[0].onset:
        return Excluded("the loss was not finite before the scale fell: the collapse is a consequence")
    out = [Evidence(2.5, fell[0].summary, "scale", fell[0].places)]
    train: Series | None = case.get("train_loss")
    # Far below 1 what is left of a gradient in fp16 is rounding, which Adam makes into full steps: then the loss may rise.
    why = at_any_scale(case.get("loss_scale"), train)
    if train is not None and not why:
        after = train.values[(train.at >= fell[0].onset) & train.finite]
        before = train.values[(train.at < fell[0].onset) & train.finite]
        if len(after) >= 5 and len(before) >= 5:
            out += _stands_still(before, after)
    if why:
        out.append(Evidence(4.0, why, "range"))
    return out


def _stands_still(
    before: np.ndarray[tuple[int], np.dtype[np.float64]], after: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[Evidence]:
    start, end = float(np.median(before[-10:])), float(np.median(after[-10:]))
    moved = (end - start) / abs(start) if start else 0.0
    if moved > 0.2:
        return [Evidence(-2.0, f"the loss rose from {start:.4g} to {end:.4g}: the weights did change", "loss")]
    if moved < -0.1:
        return [Evidence(-4.0, f"the loss goes on falling, from {start:.4g} to {end:.4g}: updates are taken", "loss")]
    return [Evidence(2.5, f"the loss stands at {end:.4g} since the scale fell", "loss")]


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
