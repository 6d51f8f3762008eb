"""The diffusion model is trained on other noise than it samples with.

## What happens
Sampling goes from noise far above the data down to almost none. Noise levels that training never drew are asked for
there, and the network guesses.

## How it shows
The training loss looks normal or even low; samples are grey or noisy, and their score stops early.

## What else looks like this
An average of the weights that is still its first copy; too few steps of the sampler.

## When this is wrong
The data has another scale (latents), and the noise was scaled with it.

## Fix
P_mean −1.2, P_std 1.2 and sigma_max 80 for data of unit scale; elsewhere scaled with the spread of the data.

## Trial
Plot the loss against the noise level over the whole range of the sampler: it must not turn up at its ends.

## References
- Karras, Aittala, Aila and Laine 2022, Elucidating the Design Space of Diffusion-Based Generative Models
  (arXiv:2206.00364), table 1.
- Lin, Liu, Li and Yang 2024, Common Diffusion Noise Schedules and Sample Steps are Flawed (arXiv:2305.08891).
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "sigma-mismatch"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "below-baseline", "worse-than-trivial", "declined-after-peak", "plateau", "first-loss-odd",
)  # fmt: skip
SHOWS = {"noise-range": "high", "train-gain": "in"}
FORBIDS = {"noise-range": "in"}
TRIAL = "plot the loss against the noise level over the whole range of the sampler"
PUBLISHED = {"diffusion.P_mean": -1.2, "diffusion.P_std": 1.2, "diffusion.sigma_max": 80.0}  # EDM, unit scale


def remedies(case: Case) -> tuple[Remedy, ...]:
    told = [(knob, case.knob(knob), usual) for knob, usual in PUBLISHED.items()]
    edits = tuple(Edit(k, now, usual, "as published") for k, now, usual in told if now is not None and now != usual)
    return (Remedy("Train on the published range of noise.", edits, "try", "the score of samples improves"),)
