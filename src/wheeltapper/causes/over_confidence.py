"""The model grows over-confident: the validation loss rises while its decisions stay as good.

## What happens
Once the training items are right, the cross entropy falls only by larger logits. On held-out items the few
wrong answers become very costly, though their number does not grow.

## How it shows
The validation loss turns and rises; accuracy holds or still improves.

## What else looks like this
Overfitting proper, where the decisions get worse as well; a divergence, where training rises too.

## When this is wrong
Accuracy falls with the loss: then the model itself is worse.

## Fix
Choose the checkpoint by the score that counts; one temperature fitted on held-out items mends the
probabilities; label smoothing in the next run.

## Trial
Fit a temperature on half of the validation set: the loss of the other half must fall below its old best.

## References
- Guo et al. 2017, On Calibration of Modern Neural Networks (arXiv:1706.04599).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Edit, Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import badness, noise_of

ID = "over-confidence"
AREA = "evaluation"
EXPLAINS = ("declined-after-peak", "train-val-gap")
PRIOR = -1.5
TRIAL = "fit a temperature on half of the validation set: the loss of the other half must fall below its old best"

DECISIONS = ("accuracy", "top5", "error", "f1")


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    fallen = case.found("declined-after-peak")
    loss = [f for f in fallen if _quantity(case, f.series) in ("loss", "nll")]
    if not loss or loss[0].onset is None:
        return Excluded("no validation loss rose after its best")
    lost = case.found("gap-at-guessing", severity="ill")
    if lost:
        return Excluded("held-out items are right less than half as often as training items: more is lost than confidence")
    scores: tuple[Series, ...] = case.get("val_metrics") or ()
    decisions = [s for s in scores if s.quantity in DECISIONS and not s.part and s.clock == loss[0].clock]
    worse = [f.series for f in fallen if _quantity(case, f.series) not in ("loss", "nll", "perplexity")]
    if worse:
        return Excluded(f"{worse[0]} got worse as well")
    for series in decisions:
        x = badness(series.values, series.better)
        before, after = (x[series.finite & side] for side in (series.at <= loss[0].onset, series.at > loss[0].onset))
        if len(before) < 2 or len(after) < 3:
            continue
        change = float(np.median(before[-3:]) - np.median(after[-3:]))
        noise = max(noise_of(x).sigma, 1e-12)
        if change < -3 * noise:
            return Excluded(f"{series.name} got worse as well")
        return [Evidence(6.0, f"{series.name} holds or improves while the validation loss rises", "decisions",
                         (series.place(len(series) - 1),))]  # fmt: skip
    return []


def _quantity(case: Case, name: str | None) -> str | None:
    found = case.run.series.get(name or "")
    if found is None and "loss" in (name or ""):
        return "loss"
    return found.quantity if found is not None else None


def remedies(case: Case) -> tuple[Remedy, ...]:
    smoothing = case.knob("loss.label_smoothing")
    edits = (Edit("loss.label_smoothing", smoothing, 0.1, "bounds the logits"),) if smoothing in (0, 0.0) else ()
    return (
        Remedy("Choose the checkpoint by accuracy; fit a temperature, or smooth the labels next time.", edits, "try",
               "the validation loss no longer rises while accuracy holds"),
    )  # fmt: skip
