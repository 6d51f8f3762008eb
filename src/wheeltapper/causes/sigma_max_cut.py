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

import math
from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded, proofs
from wheeltapper.causes._look import settings_like
from wheeltapper.finding import Edit, Evidence, Remedy

ID = "sigma-max-cut"
AREA = "objective"
EXPLAINS = ("declined-after-peak", "never-left-zero", "first-loss-odd", "plateau")
PRIOR = -3.0
TRIAL = "the loss at full masking on held-out items: no better than the entropy of single tokens decides"

MASKED = 0.95  # below, every twentieth token or more is visible at the strongest noise of training


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    top = case.knob("diffusion.sigma_max")
    absorbing = [leaf for leaf in settings_like(case.run, r"graph|absorb|mask\w*_?diffusion|noise\.type")
                 if "absorb" in f"{leaf.dotted} {leaf.value}".lower()]  # fmt: skip
    told = proofs(case, "noise-ends-early")
    if told and case.found("noise-ends-early", severity="ill"):
        return told
    if not isinstance(top, (int, float)) or top <= 0 or case.knobs is None:
        return Excluded("no largest noise is set, as far as is known")
    if not absorbing:
        return Excluded("not known to be masked diffusion; for continuous noise the end-points prove nothing")
    share = 1 - math.exp(-top)
    if share >= MASKED:
        return Excluded(f"sigma_max {top:g} masks {share:.1%} of the tokens")
    return [
        Evidence(7.0, f"sigma_max {top:g} masks at most {share:.0%} of the tokens, and sampling starts at 100 %", "proof",
                 (case.knobs.place("diffusion.sigma_max"),))
    ]  # fmt: skip


def remedies(case: Case) -> tuple[Remedy, ...]:
    top = case.knob("diffusion.sigma_max")
    return (
        Remedy("Train up to full masking.", (Edit("diffusion.sigma_max", top, 5.0, "99.3 % masked"),), "try",
               "the loss rises to that of full masking, and samples improve"),
    )  # fmt: skip
