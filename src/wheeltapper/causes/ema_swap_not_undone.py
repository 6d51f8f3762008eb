"""The averaged weights stay in the model after each evaluation.

## What happens
For evaluation the averaged weights are copied into the model and the raw ones are not put back. Training goes on from
the average with an optimizer state that belongs to other weights.

## How it shows
The training loss jumps on the rows right after every evaluation, and only there.

## What else looks like this
A model left in evaluation mode, a data order that restarts with each evaluation, an epoch boundary at the same place.

## When this is wrong
No average of the weights is kept; or the jumps come at epochs without an evaluation.

## Fix
Store the raw weights before the copy and restore them after it.

## Trial
Move the evaluation interval by a third: the jumps must move with it.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- torch_ema and ema-pytorch: store, copy and restore around an evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy
from wheeltapper.run.model import Series
from wheeltapper.signals.statistics import robust_sigma

ID = "ema-swap-not-undone"
AREA = "averaging"
EXPLAINS = ("periodic", "oscillating", "spiked", "epoch-sawtooth")
PRIOR = -3.0
TRIAL = "move the evaluation interval by a third: the jumps must move with it"

EVALS = 5
Z = 4.0  # of the differences between rows; one in 15,000 if they are normal


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    if case.knobs is not None and not case.knob("ema.decay") and not case.knob("ema.enabled"):
        return Excluded("no average of the weights is configured")
    train: Series | None = case.get("train_loss")
    scored: Series | None = case.get("main_metric") or case.get("val_loss")
    at = None if train is None or scored is None else scored.on(train.clock)
    if train is None or at is None or len(at) < EVALS or len(train) < 6 * len(at):
        return Excluded("training loss and evaluations are not logged finely enough to see it")
    share, size = _jumps_after(train, at)
    if share < 0.8:
        return Excluded(f"the training loss jumps after {share:.0%} of the evaluations only")
    out = [Evidence(4.0, f"the training loss jumps by {size:.3g} right after {share:.0%} of the evaluations", "period")]
    if case.knob("ema.decay") or case.knob("ema.enabled"):
        out.append(Evidence(1.5, "an average of the weights is kept", "ema"))
    return out


def _jumps_after(train: Series, at: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> tuple[float, float]:
    """Share of evaluations after which the loss jumps, and the usual size; rows elsewhere set the noise."""
    values, spots = train.values[train.finite], train.at[train.finite]
    steps = np.diff(values)
    after = np.searchsorted(spots, at, side="right") - 1  # the step from the row at or before it to the next one
    after = np.unique(after[(after >= 0) & (after < len(steps))])
    if len(after) < EVALS:
        return 0.0, 0.0
    rest = np.delete(steps, after)
    # The way back down follows a jump at once; it would count as noise.
    sigma = max(robust_sigma(rest), 1e-12)
    jumped = steps[after] > Z * sigma
    return float(np.mean(jumped)), float(np.median(steps[after][jumped])) if jumped.any() else 0.0


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Put the raw weights back after each evaluation.",
            (),
            "safe",
            "the training loss no longer jumps after evaluations",
        ),
    )
