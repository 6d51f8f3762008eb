"""The posterior collapsed: the latent code carries nothing.

## What happens
A strong decoder explains the data without the code, and the KL term pays for setting the code to the prior. Once
it is there, no gradient brings it back.

## How it shows
The KL term sinks to zero and stays, while the reconstruction stays at the level of a model without input.

## What else looks like this
KL warm-up (the weight is still small, KL is large), a term that is logged with too few digits, a KL between old
and new policy (reinforcement), which is small by design.

## When this is wrong
KL is well above zero, or the reconstruction goes on improving.

## Fix
Raise the weight of KL slowly from zero, free bits, a weaker decoder.

## Trial
Decode codes of other items: an unchanged reconstruction loss decides.

## References
- Bowman et al. 2016, Generating Sentences from a Continuous Space (arXiv:1511.06349).
- Kingma et al. 2016, Improving Variational Inference with Inverse Autoregressive Flow (arXiv:1606.04934),
  free bits.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "kl-collapse"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("plateau", "loss-exactly-zero", "constant-metric")
SHOWS = {"kl-level": "low", "kl-weight": "high"}
FORBIDS = {"kl-level": "in"}
PROVED_BY = ("kl-weight-extreme", "kl-outweighs")
TRIAL = "decode codes of other items: an unchanged reconstruction loss decides"
REMEDY = Remedy(
    "Start afresh with a weight of KL that rises from zero, or with free bits.", (), "try", "KL stays above zero"
)
