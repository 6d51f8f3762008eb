"""sigma_data is not the spread of the data.

## What happens
The preconditioning of EDM assumes the standard deviation of the data. Latents that were not scaled, pixels in 0
to 255, padded channels make it another one: inputs and targets of the network then have the wrong size at every
noise level.

## How it shows
The first loss is not 1: with a network that starts at zero it is the ratio of the real to the assumed variance
at high noise.

## What else looks like this
An output layer that does not start at zero, another weighting of the loss.

## When this is wrong
The first loss is 1 within a few percent: data and assumption agree.

## Fix
Measure the root mean square of what enters the loss, and set sigma_data to it.

## Trial
The loss of one batch before the first step, by noise level: 1 at all levels, or not.

## References
- Karras, Aittala, Aila and Laine 2022, Elucidating the Design Space of Diffusion-Based Generative Models
  (arXiv:2206.00364).
- NVlabs/edm, training/loss.py.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series
from wheeltapper.simulate.baselines import edm_initial_loss_mean

ID = "sigma-data-mismatch"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("first-loss-odd", "worse-than-trivial", "below-baseline")
SHOWS = {"first-loss-odd": "seen", "first-loss": "out"}
TRIAL = "the loss of one batch before the first step, by noise level: 1 at all levels, or not"
FIRST = 10  # steps: a later first row has left the initial point


def _first_loss(case: Case) -> float | None:
    train: Series | None = case.get("train_loss")
    if train is None or train.at[0] > FIRST or train.clock != "step" or case.knob("resume.from"):
        return None
    return float(train.values[0]) if train.finite[0] else None


def _data_rms(case: Case, first: float, assumed: float) -> float | None:
    """The spread of the data that would give this first loss, by the closed form."""
    mean, spread = case.knob("diffusion.P_mean", -1.2), case.knob("diffusion.P_std", 1.2)
    guesses = assumed * np.geomspace(0.02, 50, 200)
    losses = np.array([edm_initial_loss_mean(float(g), assumed, float(mean), float(spread)) for g in guesses])
    if not losses.min() <= first <= losses.max():
        return None
    return float(np.interp(first, losses, guesses))


def remedies(case: Case) -> tuple[Remedy, ...]:
    assumed, first = case.knob("diffusion.sigma_data"), _first_loss(case)
    rms = _data_rms(case, first, float(assumed)) if first is not None and isinstance(assumed, (int, float)) else None
    edits = () if rms is None else (Edit("diffusion.sigma_data", assumed, round(rms, 2), "as the first loss says"),)
    return (Remedy("Measure the spread of the data and set sigma_data to it.", edits, "try", "the first loss is 1"),)
