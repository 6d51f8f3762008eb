"""The run was resumed, and something jumped there.

## What it sees
At a restart: the learning rate jumps against its own course, or the loss or the metric jumps by more than
its noise.

## Why it matters
A resume that changes the curve lost a state: optimizer moments, schedule position, loss scale, averages,
data order. The run after it is not the continuation of the run before.

## How it decides
For each resume the last values before and the first after it, on the live branch. The learning rate: a
ratio above 1.5 or below 1/1.5 while its neighbours change by less than 10 % per row. Loss and metric: a
change for the worse of more than six times the noise. A jump of the rate is ill when the metric also got
worse and did not regain its best; else a watch.

## When it is wrong
A resume with a deliberately new schedule; a first running mean after the restart.

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- PyTorch, torch/optim/lr_scheduler.py.
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
- Bekman, Machine Learning Engineering Open Book (stas00/ml-engineering), training loss patterns.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Unknown
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.study.progress import Progress
from wheeltapper.study.statistics import badness, noise_of

ID = "restart-jump"
LIVE = True
RATE = 1.5
HIGH = 0.3  # of the peak: a schedule that was meant to end low and ends above this began again


def look(
    run: Run,
    lr: Series | None = None,
    train_loss: Series | None = None,
    main_metric: Series | None = None,
    progress: Progress | None = None,
) -> Answer | list[Finding]:
    resumes = [s for s in run.segments if s.kind == "resume"]
    if not resumes:
        return Clear("the record shows no resume") if run.segments else Unknown("no launches are known", ())
    out: list[Finding] = []
    for segment in resumes[:20]:
        rate = _rate_jump(lr, segment.start) if lr is not None else None
        worse = _got_worse(main_metric, segment.start) if main_metric is not None else None
        if rate is not None and lr is not None:
            index, ratio = rate
            text = f"the learning rate jumps {ratio:.3g}x at the resume at {where(lr, index)} ({lr.values[index - 1]:.3g} to {lr.values[index]:.3g})"
            done = progress is not None and progress.state == "finished"
            again = float(lr.values[-1]) > RATE * float(lr.values[index - 1])  # at once, or through a new warm-up
            decayed = float(lr.values[index - 1]) < 0.9 * float(np.nanmax(lr.values[:index]))
            over = done and again and decayed and float(lr.values[-1]) > HIGH * float(np.nanmax(lr.values))
            if worse:
                text += f"; {worse}"
            elif over:
                text += f"; the run is over and the rate still stands at {lr.values[-1]:.3g}"
            out.append(
                seen(
                    ID,
                    lr,
                    text,
                    severity="ill" if (worse and ratio > 1) or over else "watch",
                    grade="is",
                    onset=index,
                    ratio=ratio,
                )
            )
            continue
        jump = _loss_jump(train_loss, segment.start) if train_loss is not None else None
        if jump is not None and train_loss is not None:
            index, size = jump
            text = f"{train_loss.name} jumps by {size:.3g} times its noise at the resume at {where(train_loss, index)}"
            out.append(seen(ID, train_loss, text, severity="watch", grade="is-p", onset=index, p=1e-6, sigmas=size))
    return out or Clear("nothing jumps at a resume")


def _split(series: Series, start: float) -> int | None:
    index = int(np.searchsorted(series.at, start, side="left"))
    return index if 2 <= index < len(series) else None


def _rate_jump(lr: Series, start: float) -> tuple[int, float] | None:
    index = _split(lr, start)
    if index is None or lr.values[index - 1] <= 0 or lr.values[index] <= 0:
        return None
    ratio = float(lr.values[index] / lr.values[index - 1])
    usual = abs(float(np.log(lr.values[index - 1] / lr.values[index - 2]))) if lr.values[index - 2] > 0 else 0.0
    return (index, ratio) if max(ratio, 1 / ratio) > RATE and abs(np.log(ratio)) > 4 * usual else None


def _loss_jump(loss: Series, start: float) -> tuple[int, float] | None:
    index = _split(loss, start)
    if index is None or index < 5:
        return None
    before = loss.values[max(0, index - 20) : index]
    sigma = max(noise_of(loss.values[:index]).sigma, 1e-12)
    size = float((loss.values[index] - np.nanmedian(before)) / sigma)
    return (index, size) if size > 6 else None


def _got_worse(metric: Series, start: float) -> str:
    index = _split(metric, start)
    if index is None:
        return ""
    x = badness(metric.values, metric.better)
    before, after = x[:index][np.isfinite(x[:index])], x[index:][np.isfinite(x[index:])]
    if not len(before) or not len(after):
        return ""
    sigma = noise_of(before[-max(4, len(before) // 3) :]).sigma
    if after.min() > before.min() + 2 * sigma:
        return (
            f"{metric.name} was {abs(before[-1]):.4g} before and never regains it (best after: {abs(after.min()):.4g})"
        )
    return ""


CASES = {
    "finding": {
        "lr": [1e-3 * 0.9**i for i in range(20)] + [9e-4, 8.5e-4, 8e-4],
        "train/loss": [2.0 - 0.05 * i for i in range(23)],
        "events": [("resume", "Resuming from checkpoint", 21)],
    },
    "clear": {"lr": [1e-3 * 0.9**i for i in range(20)], "train/loss": [2.0 - 0.05 * i for i in range(20)]},
}
