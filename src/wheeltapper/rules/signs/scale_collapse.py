"""The loss scale keeps halving: fp16 gradients overflow at every scale.

## What it sees
A logged loss scale that falls by a factor of eight or more and does not recover, or falls below 1.

## Why it matters
Each halving is a skipped step. When the scale sinks without end, some gradient is infinite at any scale:
the overflow is in the forward pass or the gradients truly explode, and no step is taken meanwhile.

## How it decides
Exact arithmetic of the scaler: a scale below 1 means that no usable scale exists (the scaler's own
documentation), unless the loss still falls and the scale stands above 1e-4 (fairseq's floor). A fall of 2^3 within the last half of the record, ending at its lowest, is a collapse; falls
during the search of the first 50 rows, or single halvings, are how a scaler works (at equilibrium one skip
per growth interval). A program that stops because its scale is at the minimum says
it itself, and so does one that skips step after step there. A scale of -1, 0 or exactly 1 throughout is a placeholder or a disabled scaler.

## When it is wrong
A scaler with another floor or a fixed scale; a record that stops in the middle of a dip.

## References
- PyTorch, torch/amp/grad_scaler.py.
- BigScience 104B chronicles (bigscience-workshop/bigscience, train/tr8-104B-wide).
- DeepSpeed, deepspeed/runtime/fp16/loss_scaler.py (deepspeedai/DeepSpeed).
- fairseq, fairseq/optim/dynamic_loss_scaler.py (facebookresearch/fairseq).
- pytorch/pytorch issues 98828 (a scale that overflows) and 99640 (a scale below 1).
- deepspeedai/DeepSpeedExamples issue 531 ("loss scale already at minimum").
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place, Unknown
from wheeltapper.rules.signs import last_words, seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.study.statistics import noise_of

ID = "scale-collapse"
LIVE = True
DECIDES = True
STOPPED = re.compile(r"minimum loss scale reached|loss scale already at minimum", re.IGNORECASE)
FLOOR = 1e-4  # fairseq's --min-loss-scale; below, nothing that fp16 holds is left of a gradient
SAME = re.compile(r"loss scale: ([\d.e+-]+), reducing to ([\d.e+-]+)", re.IGNORECASE)  # DeepSpeed, at its floor
FALL = 8.0  # three halvings without recovery; healthy scalers halve once and grow back


def look(run: Run, loss_scale: Series | None = None, train_loss: Series | None = None) -> Answer:
    if told := _told(run, train_loss):
        return told
    if loss_scale is None:
        return Unknown("the loss scale is not logged", ("loss scale",))
    good = loss_scale.finite & (loss_scale.values > 0)
    x = loss_scale.values[good]
    if len(x) < 3 or np.all(x == x[0]):
        return Clear(f"the loss scale is {x[0]:g} throughout" if len(x) else "no positive loss scale")
    index_of = np.flatnonzero(good)
    half = x[len(x) // 2 :]
    level = float(np.median(x[: max(1, len(x) // 2)]))
    low = float(x[-1])
    if x.min() < 1.0 and x[0] >= 1.0:
        first = int(index_of[int(np.argmax(x < 1.0))])
        text = f"the loss scale falls below 1 at {where(loss_scale, first)} (it was {level:g})"
        learns = low >= FLOOR and _still_learns(train_loss, float(loss_scale.at[first]))
        text += ", and the loss still falls" if learns else ": no scale lets fp16 through"
        return seen(
            ID, loss_scale, text, severity="watch" if learns else "ill", grade="is", onset=first, level=level, last=low
        )
    peak = int(np.argmax(half == half.max()))
    before = max(level, float(half[peak]))
    if low <= before / FALL and low <= half.min() and float(np.max(x[-max(2, len(x) // 10) :])) <= before / 2:
        start = int(np.flatnonzero(x >= before / 2)[-1]) + 1
        onset = int(index_of[min(start, len(x) - 1)])
        hurt = _loss_rose(train_loss, float(loss_scale.at[onset]))
        text = f"the loss scale falls from {before:g} to {low:g} since {where(loss_scale, onset)}, {np.log2(before / low):.0f} halvings"
        return seen(
            ID, loss_scale, text, severity="ill" if hurt else "watch", grade="is", onset=onset, level=before, last=low
        )
    return Clear(f"the loss scale ends at {low:g}, no collapse")


def _told(run: Run, train_loss: Series | None) -> Finding | None:
    """fairseq and DeepSpeed stop by themselves when no scale is left, and say so."""
    stuck = [e for e in run.events if e.kind == "overflow" and (m := SAME.search(e.text)) and float(m[1]) == float(m[2])]
    rows = len(train_loss) if train_loss is not None else 0
    if sum(e.count for e in stuck) >= max(3, rows / 2):  # a few at the floor in a long run are not every step
        text = f"step after step is skipped at the lowest loss scale there is: {last_words(stuck[0].text, 120)}"
        return Finding(ID, text, "ill", "is", places=(Place(stuck[0].file, stuck[0].line),))
    last = next((e for e in reversed(run.events) if e.kind == "crash" and STOPPED.search(e.text)), None)
    if last is None:
        return None
    words = last_words(last.text, 120)
    text = f"the program stopped itself because no loss scale is left: {words}"
    if train_loss is not None and len(train_loss):
        end, place = len(train_loss) - 1, Place(last.file, last.line)
        return seen(
            ID, train_loss, text, severity="ill", grade="is", onset=end, extra=(place,), level=1.0, last=1e-4
        )
    return Finding(ID, text, "ill", "is", places=(Place(last.file, last.line),))


def _still_learns(loss: Series | None, onset: float) -> bool:
    """The loss is lower since the scale fell than before it, by more than its noise: updates are taken."""
    if loss is None:
        return False
    before = loss.values[(loss.at < onset) & loss.finite]
    after = loss.values[(loss.at >= onset) & loss.finite]
    if not len(before) or not len(after):
        return False
    noise = noise_of(loss.values[loss.finite]).sigma if int(loss.finite.sum()) >= 8 else 0.0
    return float(np.median(after)) < float(np.median(before[-3:])) - 3 * noise / float(np.sqrt(len(after)))


def _loss_rose(loss: Series | None, onset: float) -> bool:
    """Halvings hurt when the loss rose with them; a search for a usable scale does not."""
    if loss is None:
        return False
    before = loss.values[(loss.at < onset) & loss.finite]
    after = loss.values[(loss.at >= onset) & loss.finite]
    return bool(len(before) and len(after) and np.median(after) > 1.2 * np.median(before[-10:]))


_n = 40
CASES = {
    "finding": {
        "loss_scale": [65536.0] * 30 + [65536.0 / 2**i for i in range(1, 20)],
        "train/loss": [2.0] * 30 + [3.0] * 19,
    },
    "clear": {"loss_scale": [65536.0] * 20 + [131072.0] * 20 + [65536.0] * 3},
    "near miss": {"loss_scale": [8388608.0, 65536.0, 16384.0, *[16384.0] * 20], "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
