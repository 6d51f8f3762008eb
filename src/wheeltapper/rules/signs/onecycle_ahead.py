"""A one-cycle schedule runs one step ahead of the training loop, and will end one step too early.

## What it sees
End-of-epoch learning rates of a OneCycleLR schedule that fit the schedule only with one step too many.

## Why it matters
OneCycleLR raises an error when it is stepped past its length. A single extra step at the start (to silence
a warning, or by a resume) makes the very last batch of the last epoch fail: the run dies at the end.

## How it decides
Exact arithmetic: in the warm-up the rate is a half cosine from max/25 to max, so each logged rate gives the
schedule's own position. Over whole epochs that position is a straight line whose slope is the number of
steps per epoch and whose offset is the number of extra steps. It needs rates with five digits and two
epochs of warm-up. Ill when the offset is one or more and the record stops within the last epoch;
a watch while the end is still ahead.

## When it is wrong
A rate that is logged in the middle of an epoch; a div_factor other than 25.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- arghyaiitb/assignment_9, TRAINING_ISSUES_RESOLVED.md, its train.py and the 80-epoch log that dies in the
  last epoch.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.simulate.lr_shape import LrShape

ID = "onecycle-ahead"
LIVE = True
DIV = 25.0  # torch's default div_factor


def look(lr: Series, lr_shape: LrShape) -> Answer:
    epochs = lr.on("epoch")
    if lr_shape.kind != "one_cycle" or epochs is None or lr_shape.ends_at is None:
        return Unknown("the learning rate is no one-cycle schedule logged by epoch", ("lr by epoch",))
    found = _steps_and_offset(epochs, lr.values, lr_shape.peak)
    if found is None:
        return Unknown("too few digits or too short a warm-up to place the schedule", ("lr with more digits",))
    steps, extra = found
    total = round(lr_shape.ends_at if lr.clock == "epoch" else float(epochs[-1]))
    if extra < 0.5:
        return Clear(f"the schedule is in step with the loop ({steps:.0f} steps per epoch)")
    last = float(epochs[-1])
    died = total - 1 <= last < total
    text = (
        f"the one-cycle schedule runs {round(extra)} step ahead of the loop ({steps:.0f} steps per epoch): it raises an error in "
        f"the last step of epoch {total}" + (f", and the record stops after epoch {last:g}" if died else "")
    )
    return seen(
        ID,
        lr,
        text,
        severity="ill" if died else "watch",
        grade="is",
        onset=len(lr) - 1 if died else 0,
        steps=steps,
        ahead=extra,
    )


def _steps_and_offset(
    epochs: np.ndarray[tuple[int], np.dtype[np.float64]],
    rates: np.ndarray[tuple[int], np.dtype[np.float64]],
    peak: float,
) -> tuple[float, float] | None:
    """Steps per epoch and extra steps, from the half cosine of the warm-up."""
    top = int(np.argmax(rates))
    warm = float(epochs[top])  # the rate is at its peak at the end of the warm-up
    low = peak / DIV
    inside = [i for i in range(top) if low < rates[i] < peak * 0.999]
    if len(inside) < 2 or warm < 3 or len(f"{rates[inside[0]]:.10g}".replace(".", "").lstrip("0")) < 5:
        return None
    at = np.array([epochs[i] for i in inside])
    phase = np.array([math.acos(1 - 2 * (rates[i] - low) / (peak - low)) / math.pi for i in inside])
    slope, offset = np.polyfit(at, phase, 1)
    if slope * warm <= 1:
        return None
    steps = slope / (slope * warm - 1)
    if not 2 <= steps < 1e6 or float(np.max(np.abs(phase - (slope * at + offset)))) > 1e-4:
        return None
    return float(steps), float(offset * (steps * warm - 1))


def _rates(extra: int) -> list[float]:
    """End-of-epoch rates of OneCycleLR(0.8, 80 epochs of 625 steps, 5 of warm-up), to six digits."""
    out = []
    for epoch in range(1, 80):
        step, up, total = 625 * epoch + extra, 5 * 625 - 1, 80 * 625 - 1
        if step <= up:
            rate = 0.032 + (0.8 - 0.032) * (1 - math.cos(math.pi * step / up)) / 2
        else:
            rate = 3.2e-6 + (0.8 - 3.2e-6) * (1 + math.cos(math.pi * (step - up) / (total - up))) / 2
        out.append(round(rate, 6))
    return out


CASES = {
    "finding": {"lr": _rates(1), "start": 1, "clock": "epoch"},
    "clear": {"lr": _rates(0), "start": 1, "clock": "epoch"},
    "unknown": {"lr": [1e-3] * 10, "clock": "epoch"},
}
