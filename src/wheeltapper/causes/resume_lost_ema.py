"""The averaged weights were lost at a resume.

## What happens
The model and the optimizer are restored, the average of the weights is not: it begins again at a copy of the fresh or of
the restored model. What is evaluated and shipped is the average, so the scores fall although training goes on unharmed.

## How it shows
The held-out score jumps at the first evaluation after a resume and heals as the average forgets its new start (a few
times 1/(1 - decay) updates), while the training loss stays in its band.

## What else looks like this
A lost optimizer state (the training loss jumps as well), other validation data, overfitting (no jump, and no healing).

## When this is wrong
The training loss jumps at the resume too, or no average is kept.

## Fix
Save the average with the checkpoint and load it; where it is lost, begin it at the restored weights and with a ramp.

## Trial
Evaluate the checkpoint of the resume and the first one after it, raw weights and averaged: only the averaged ones fall.

## References
- PyTorch, torch/optim/swa_utils.py (AveragedModel is a module with a state of its own).
- timm, timm/utils/model_ema.py (huggingface/pytorch-image-models): the average is restored by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Segment, Series
from wheeltapper.signals.statistics import badness, noise_of

ID = "resume-lost-ema"
AREA = "resume"
EXPLAINS = ("declined-after-peak", "val-spike", "collapsed", "restart-jump")
PRIOR = -2.5
TRIAL = "evaluate the checkpoints around the resume with raw and with averaged weights: only the averaged ones fall"
JUMP = 4.0  # times the noise of the score: chance gives a resume that once in 30,000


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    resumes = [s for s in case.run.segments if s.kind == "resume"]
    if not resumes:
        return Excluded("the record shows no resume")
    told = [e for e in proofs(case, "resume-incomplete") if "ema" in e.text.lower() or "average" in e.text.lower()]
    if not told and (case.knob("ema.decay") is None or case.knob("ema.enabled") is False):
        return Excluded("no average of the weights is kept, as far as is known")
    train: Series | None = case.get("train_loss")
    for segment in resumes:
        fallen = _fallen(case, segment)
        if fallen is None:
            continue
        out = [*told, Evidence(2.5, f"{fallen} at the first evaluation after the resume", "score")]
        moved = _moved(train, segment) if train is not None else None
        if moved is not None and moved > 3:
            out.append(
                Evidence(-4.0, f"the training loss jumped there too, by {moved:.2g} times its noise", "training")
            )
        elif moved is not None:
            out.append(Evidence(2.5, "the training loss goes on in its band across the resume", "training"))
        return out
    return told or Excluded("no score falls at a resume")


def _fallen(case: Case, segment: Segment) -> str | None:
    """A held-out score whose first value after the resume is far worse than the last ones before."""
    scores = [s for s in (*(case.get("val_metrics") or ()), case.get("val_loss")) if s is not None]
    for series in scores:
        at = series.on(segment.clock)
        if at is None or series.better not in ("up", "down"):
            continue
        x = badness(series.values, series.better)
        before, after = x[series.finite & (at <= segment.start)], x[series.finite & (at > segment.start)]
        if len(before) < 5 or not len(after):
            continue
        sigma = max(noise_of(before).sigma, 1e-12)
        if after[0] - float(np.median(before[-3:])) > JUMP * sigma:
            values = series.values[series.finite & (at > segment.start)]
            last = series.values[series.finite & (at <= segment.start)][-1]
            return f"{series.name} goes from {last:.4g} to {values[0]:.4g}"
    return None


def _moved(train: Series, segment: Segment) -> float | None:
    """How far the training loss rose across the resume, in units of its noise."""
    at = train.on(segment.clock)
    if at is None:
        return None
    before = train.values[train.finite & (at < segment.start)][-20:]
    after = train.values[train.finite & (at >= segment.start)][:10]
    if len(before) < 5 or len(after) < 3:
        return None
    return float(np.median(after) - np.median(before)) / max(noise_of(before).sigma, 1e-12)


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Save the averaged weights with the checkpoint and load them at a resume.",
            (),
            "safe",
            "the held-out score continues within its band across the resume",
        ),
    )
