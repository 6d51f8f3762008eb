"""The training loss falls, and the validation loss stays where the first evaluation found it.

## What it sees
A validation loss that hardly moves over the whole run, from an early first evaluation on, while the training loss of the
same kind falls by a fifth or more.

## Why it matters
Whatever is being trained is not what is being evaluated: averaged weights that are still the first ones, an evaluation
of other weights or other inputs. Overfitting looks otherwise: its validation loss falls first and then turns.

## How it decides
Eight evaluations or more, the first within the first tenth of the record. All of them lie within 3 % of the first, the
training loss (block medians) fell by at least 20 % between the first and the last evaluation, by more than five times
what the validation loss moved, and both count the same quantity in the same unit (their first values are within a factor
of two). No other score on held-out data improved by more than its noise and by what anybody would act on. It is ill only where the settings tell what an
untrained model loses (classes, tokens, a known objective) and the validation stands there, or where it moves by less
than 1 % while training takes 40 % and more off its loss, and moves for the better or not at all (at most a tenth of the steps is
for the worse): a loss at its floor scatters about it, or rises; else a watch, because fine-tuning that begins at its floor and
learns its training set by heart looks the same.

## When it is wrong
A validation set that has nothing to do with the training set, from the start. Fine-tuning that was at its floor at the first
evaluation, and whose validation loss then creeps down by less than 1 %, without scatter, while the training set is learned by heart.

## References
Izmailov et al. 2018 (averaging weights); Karras et al. 2024, arXiv 2312.02696 (length of the average).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Series
from wheeltapper.study.curves import worth_acting
from wheeltapper.study.statistics import badness, block_medians, noise_of
from wheeltapper.study.trivial import Trivial

ID = "val-left-behind"
LIVE = True
UNTRAINED = 0.25  # as near as a first loss must be for its unit to be known (study/trivial.py)
EVALS, EARLY, STILL, FELL, TIMES, UNITS = 8, 0.1, 0.03, 0.2, 5.0, 2.0
DEAF, LARGE = 0.01, 0.4  # does not answer to training that takes this share off the loss: no set is that indifferent
# Of the steps from one evaluation to the next may be for the worse. An average creeps after its weights, and weights that
# nothing trains stand still: 0 of 619 steps in 21 lab runs with such an average. Weights that are trained scatter.
AGAINST = 0.1


def look(
    train_loss: Series, val_loss: Series, val_metrics: tuple[Series, ...] = (), trivial_loss: Trivial | None = None
) -> Answer:
    y, at = val_loss.values[val_loss.finite], val_loss.at[val_loss.finite]
    track = train_loss.on(val_loss.clock)
    if track is None or len(y) < EVALS or np.any(y <= 0) or train_loss.quantity != val_loss.quantity:
        return Unknown("too few evaluations, or no common clock, to compare training with validation", ("val/loss",))
    good = train_loss.finite & (train_loss.values > 0) & np.isfinite(track)
    if good.sum() < EVALS or at[0] > EARLY * at[-1]:
        return Unknown("the beginning of the run is not evaluated", ("an evaluation before training",))
    spots, levels = block_medians(train_loss.values[good], 40)
    x = np.interp(at, np.interp(spots, np.arange(int(good.sum())), track[good]), levels)
    first = float(y[0])
    moved, fell = float(np.abs(y / first - 1).max()), 1 - float(x[-1] / x[0])
    same_unit = 1 / UNITS < first / float(x[0]) < UNITS
    improved = next((s for s in val_metrics if s.quantity != "loss" and _improved(s)), None)
    if moved > STILL or fell < FELL or fell < TIMES * moved or not same_unit or improved is not None:
        return Clear(f"{val_loss.name} moved by {moved:.0%}, the training loss fell by {fell:.0%}")
    text = (
        f"{val_loss.name} stays within {moved:.1%} of its first value ({first:.4g} to {y[-1]:.4g} in {len(y)} evaluations) "
        f"while {train_loss.name} falls by {fell:.0%}: what is trained is not what is evaluated"
    )
    untrained = trivial_loss is not None and abs(first / trivial_loss.loss - 1) < UNTRAINED
    untrained = untrained or (moved < DEAF and fell > LARGE and float(np.mean(np.diff(y) > 0)) <= AGAINST)
    return seen(
        ID, val_loss, text, severity="ill" if untrained else "watch", grade="is-p" if untrained else "suspected",
        onset=0, p=1e-3, moved=moved, fell=fell,
    )  # fmt: skip


def _improved(score: Series) -> bool:
    z = badness(score.values[score.finite], score.better)
    if len(z) < EVALS or score.better is None:
        return False
    k = max(1, len(z) // 8)
    gain, level = float(np.median(z[:k]) - np.median(z[-k:])), abs(float(np.median(z[:k])))
    # An average that hardly moves has hardly any noise: what is gained must also be worth something.
    return gain > max(3 * noise_of(z).sigma, worth_acting(score, level))


_C = "num_classes: 10\nlr: 0.1\nepochs: 40\n"
_down = [2.0 * 0.96**i + 0.5 for i in range(40)]
CASES = {
    "finding": {"train/loss": _down, "val/loss": [2.5 - 0.001 * i for i in range(40)], "config": _C},
    "fine-tuning": {"train/loss": _down, "val/loss": [2.5 - 0.001 * i for i in range(40)], "expect": "watch"},
    "deaf": {"train/loss": _down, "val/loss": [2.5 - 0.0002 * i for i in range(40)], "expect": "ill"},
    # At its floor: it stands as still, and scatters.
    "floor": {"train/loss": _down, "val/loss": [2.5 + 0.002 * ((i * 7) % 5 - 2) for i in range(40)], "expect": "watch"},
    "clear": {"train/loss": _down, "val/loss": [v * 1.2 for v in _down]},
    "near miss": {
        "train/loss": _down,
        "val/loss": [2.5 - 0.001 * i for i in range(40)],
        "val/accuracy": [0.1 + 0.02 * i for i in range(40)],
        "expect": "clear",
    },
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}
