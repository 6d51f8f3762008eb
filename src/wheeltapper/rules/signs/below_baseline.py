"""A validation score is worse than doing nothing at all.

## What it sees
A PSNR of a super-resolution or restoration run that lies below what plain interpolation gives, or below that of
the input itself where the log states it.

## Why it matters
A network that adds detail to an interpolated base starts at the level of the base. A score far below it
means that the evaluation compares the wrong images (resized, shifted, wrong range), not that training
degrades. No optimizer setting can mend that, and no trend in such a score means anything.

## How it decides
The run must be a super-resolution or restoration run (its config has a scale, or its framework does only
that). Bicubic interpolation reaches 26 to 34 dB for a factor of 2 on photographs, a constant grey image 10
to 19 dB: a best PSNR under 20 dB, for a factor of 2 to 4, is below any interpolation. Training losses must be normal
(falling or low), otherwise the model itself may be broken. Where the log gives the PSNR of the input (a denoiser's noisy
pictures, the interpolated ones), that is the baseline: the last quarter of the evaluations, all of them below it.

## When it is wrong
Restoration of very heavy noise, or PSNR computed on another range than 8 bits.

## References
- delafer/traiNNer-redux, commits 069b6d59 and 95d13e03: validation on images shrunk to 64 pixels, and its
  repair.
- Bicubic interpolation by 2 gives about 29 to 34 dB on photographs, a constant image 10 to 19 dB.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study.curves import Task

ID = "below-baseline"
LIVE = True
DECIDES = True
BICUBIC = 26.0  # dB; the low end of bicubic x2 on photographs (CASES §2.1: 29 to 34)
LATE = 4  # evaluations: fewer below the line could be the first ones of a network that starts at random
GREY = 20.0  # dB; above what a constant image reaches (10 to 19)


def look(run: Run, val_metrics: tuple[Series, ...], task: Task, knobs: Knobs | None = None) -> Answer:
    psnr = next((s for s in val_metrics if s.quantity == "psnr"), None)
    if psnr is None or not psnr.finite.any():
        return Unknown("no PSNR is logged, and no other score has a baseline without data", ("a baseline score",))
    given = next((s for s in run.series.values() if s.quantity == "baseline" and s.finite.any()), None)
    if given is not None and int(psnr.finite.sum()) >= LATE:
        found = _against_input(psnr, given)
        sharp = task.adversarial or bool(knobs is not None and knobs.value("gan.enabled"))
        # An adversarial loss trades decibels for sharpness: a little below plain interpolation is its normal place.
        return replace(found, severity="watch") if isinstance(found, Finding) and sharp else found
    scale = knobs.value("sr.scale") if knobs is not None else None
    traiNNer = any("traiNNer" in f or "BasicSR" in f or "neosr" in f for f in run.formats)  # noqa: N806
    if not isinstance(scale, (int, float)) and not traiNNer:
        return Unknown("not known to be super-resolution, so PSNR has no baseline", ("the task",))
    best = float(np.nanmax(psnr.values))
    if best >= GREY:
        return Clear(f"the best PSNR is {best:.2f} dB")
    text = (
        f"{psnr.name} is at best {best:.2f} dB, from {where(psnr, 0)} on: below plain interpolation (about {BICUBIC:g} dB or more), "
        "near a constant grey image: no network that learns gives that, so the evaluation or what it is trained for is wrong"
    )
    return seen(ID, psnr, text, severity="ill", grade="is", onset=0, best=best, baseline=BICUBIC)


def _against_input(psnr: Series, given: Series) -> Answer:
    level = float(np.median(given.values[given.finite]))
    x = psnr.values[psnr.finite]
    late = x[-max(LATE, len(x) // 4) :]
    if late.max() >= level:
        return Clear(f"PSNR ends at {x[-1]:.2f} dB, the input has {level:.2f} dB")
    index = int(np.flatnonzero(psnr.finite)[0 if x.max() < level else int(np.flatnonzero(x >= level)[-1]) + 1])
    text = (
        f"{psnr.name} ends at {x[-1]:.2f} dB where the input itself has {level:.2f} dB: what the network gives back is "
        f"worse than what it was given, from {where(psnr, index)} on"
    )
    return seen(ID, psnr, text, severity="ill", grade="is", onset=index, best=float(x.max()), baseline=level)


_SR = """name: x2
scale: 2
num_gpu: 1
network_g: {type: paragonsr2_nano}
path: {experiments_root: x}
datasets: {train: {type: pairedimagedataset, dataroot_gt: a, dataroot_lq: b, lq_size: 64}}
train: {total_iter: 40000, optim_g: {type: AdamW, lr: 0.0002}}
val: {val_enabled: true, val_freq: 1000}
"""
CASES = {
    "finding": {"val/psnr": [11.5, 11.3, 11.1, 11.0], "train/loss": [0.03, 0.02, 0.018, 0.017], "config": _SR},
    "clear": {"val/psnr": [33.8, 34.1, 34.2, 34.2], "config": _SR},
    "unknown": {"val/accuracy": [0.5, 0.6, 0.7]},
}
