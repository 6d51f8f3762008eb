"""The learning rate was spent long before the run was.

## What it sees
A smooth decay that reached its end, at less than a hundredth of its peak, and then stood still for a fifth of
the run or more.

## Why it matters
Updates at such a rate change nothing. Whatever they cost was wasted, and a schedule over the whole run would
have trained on.

## How it decides
Exact, from the logged rate: at or below 1 % of the peak from some point on, without moving, for at least 20
% of the run (the tuning playbook calls that wasted). The run's planned length counts where it is known.
Steps cut by a factor (StepLR, a plateau rule) are excluded: there the last, low level is part of the plan.
It is a watch if the training loss was still falling when the rate ran out, or if half of the run was left; else a
note. Ill where the rate is exactly 0 (to the digits of the log) for half of the run or more: those updates cannot
change a weight, and nobody plans a run of which most does nothing.

## When it is wrong
A long cool-down that was wanted, for instance to let an average of the weights settle.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch Lightning, core/module.py and core/optimizer.py (Lightning-AI/pytorch-lightning).
- Accelerate, src/accelerate/scheduler.py (huggingface/accelerate).
- Diffusers, examples/text_to_image/train_text_to_image.py (huggingface/diffusers).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Severity
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.simulate.lr_fit import quantum
from wheeltapper.simulate.lr_shape import LrShape
from wheeltapper.study.progress import Progress
from wheeltapper.study.statistics import block_medians, slope_p

ID = "lr-gone-early"
LIVE = True
SHARE = 0.20  # SCH-14
MOST = 0.5  # of the run: more was wasted than was used
ZERO = 1e-3  # of the peak: a log that prints coarser digits than this does not tell 0 from a low rate


def look(lr: Series, lr_shape: LrShape, progress: Progress, train_loss: Series | None = None) -> Answer:
    start = lr_shape.low_from
    if start is None or lr_shape.cuts or lr_shape.peak <= 0 or start <= lr.at[0]:
        return Clear(f"the learning rate ends at {lr_shape.last:.3g} of a peak of {lr_shape.peak:.3g}")
    tail = lr.values[(lr.at >= start) & lr.finite]
    still = len(tail) - 1 - int(np.argmax(np.abs(tail[::-1] - tail[-1]) > 1e-4 * lr_shape.peak)) + 1
    still = 0 if still == len(tail) else still  # index in the tail of the first value that no longer moves
    index = int(np.flatnonzero((lr.at >= start) & lr.finite)[min(still, len(tail) - 1)])
    end = float(lr.at[-1])
    whole = progress.total if progress.clock == lr.clock and progress.total else end
    span = max(whole, end) - float(lr.at[0])
    share = (end - float(lr.at[index])) / span if span > 0 else 0.0
    if len(tail) - still < 3 or share < SHARE:
        return Clear(f"the learning rate is spent for the last {share:.0%} of the run")
    falling = train_loss is not None and _fell_before(train_loss, lr, index)
    text = f"the learning rate is {lr.values[index]:.3g} (peak {lr_shape.peak:.3g}) since {where(lr, index)}: {share:.0%} of the run is spent without training"
    if falling:
        text += "; the training loss was still falling when the rate ran out"
    nothing = (
        share >= MOST and lr.values[index] == 0 and float(quantum(lr.values[lr.finite]).max()) < ZERO * lr_shape.peak
    )
    severity: Severity = "ill" if nothing else "watch" if falling or share >= MOST else "note"
    return seen(ID, lr, text, severity=severity, grade="is", onset=index, share=share)


def _fell_before(loss: Series, lr: Series, index: int) -> bool:
    """The loss fell over the last fifth of the time before the rate ran out (p < 1 %)."""
    at = loss.on(lr.clock)
    if at is None:
        return False
    stop, first = float(lr.at[index]), float(lr.at[0])
    inside = loss.finite & (at <= stop) & (at >= stop - 0.2 * (stop - first))
    if int(inside.sum()) < 8:
        return False
    x, y = block_medians(loss.values[inside], 100)
    slope, p = slope_p(x, y)
    return slope < 0 and p < 0.01


CASES = {
    "finding": {
        "lr": [1e-3 * max(0.0, 1 - i / 100) for i in range(300)],
        "train/loss": [2.0 - 0.01 * min(i, 100) + 0.01 * ((i * 7) % 5) for i in range(300)],
    },
    "cool-down": {"lr": [1e-3 * max(0.0, 1 - i / 220) for i in range(300)], "expect": "note"},
    "clear": {"lr": [1e-3 * (1 - i / 300) for i in range(300)]},
    "near miss": {"lr": [0.1] * 30 + [0.01] * 30 + [0.0009] * 30, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
