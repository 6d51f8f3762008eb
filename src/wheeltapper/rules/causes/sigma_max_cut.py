"""The largest noise of training stops short of where sampling starts.

## What happens
A masked (absorbing) diffusion masks each token with probability 1 − e^−σ. With a small sigma_max most tokens
stay visible in training, while sampling starts with all of them masked: the model is asked what it never saw.

## How it shows
The loss is low, and lower for a smaller sigma_max without any learning; samples are poor.

## What else looks like this
Too little training, a model that is too small.

## When this is wrong
Continuous (EDM) diffusion: its own default samples from a noise that training hardly ever draws, and works,
because there the answer is nearly the mean of the data. End-points alone prove nothing for it.

## Fix
A sigma_max of 5 or more (99 % masked), or a log-linear schedule that ends at full masking.

## Trial
The loss at full masking on held-out items: no better than the entropy of single tokens decides.

## References
- Lou, Meng and Ermon 2024, Discrete Diffusion Modeling by Estimating the Ratios of the Data Distribution
  (arXiv:2310.16834).
- louaaron/Score-Entropy-Discrete-Diffusion, losses.py, graph_lib.py and noise_lib.py.
- Karras, Aittala, Aila and Laine 2022, Elucidating the Design Space of Diffusion-Based Generative Models
  (arXiv:2206.00364).
- architvasan/protein_lig_sedd, TRAINING_LOSS_ANALYSIS_SUMMARY.md and its curriculum code.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "sigma-max-cut"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("declined-after-peak", "never-left-zero", "first-loss-odd", "plateau")
SHOWS = {"noise-range": "high"}
PROVED_BY = ("noise-ends-early",)
TRIAL = "the loss at full masking on held-out items: no better than the entropy of single tokens decides"


def remedies(case: Case) -> tuple[Remedy, ...]:
    top = case.knob("diffusion.sigma_max")
    return (
        Remedy(
            "Train up to full masking.",
            (Edit("diffusion.sigma_max", top, 5.0, "99.3 % masked"),),
            "try",
            "the loss rises to that of full masking, and samples improve",
        ),
    )
