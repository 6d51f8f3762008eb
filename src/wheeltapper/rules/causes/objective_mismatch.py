"""The loss trains another quantity than the one that is used.

## What happens
A wrapper returns the denoised image while the loss compares it with the target of the raw network; noise,
velocity and image are mixed up; training and sampling use other scales. The loss falls, the result is wrong.

## How it shows
The loss falls or looks plausible while what is sampled or scored is bad from the start, or the loss stays above
that of predicting nothing.

## What else looks like this
A learning rate that is far too low, an evaluation that is broken in another way, too little training.

## When this is wrong
One denoising step through the sampling code has the same error as through the training code.

## Fix
Write down what the network outputs, and use that one definition in loss and sampler.

## Trial
Denoise the same noisy items through training and sampling code: the errors must agree to numerical precision.

## References
- Karras, Aittala, Aila and Laine 2022, Elucidating the Design Space of Diffusion-Based Generative Models
  (arXiv:2206.00364).
- Hang et al. 2023, Efficient Diffusion Training via Min-SNR Weighting Strategy (arXiv:2303.09556).
- annahayoon/DomainAdaptive_PoissonDiffusion, create_edm_wrapper and its loss: the regressed quantity is
  not the network's output.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "objective-mismatch"
AREA = "objective"
ABOUT = "learning"
EXPLAINS = ("worse-than-trivial", "diverged", "spiked", "declined-after-peak", "first-loss-odd", "below-baseline")
SHOWS = {"below-baseline": "seen", "train-gain": "in", "skill": "low"}
PROVED_BY = ("objective-preconditioner-mismatch",
    "collator-does-not-fit",
    "logits-into-probability-loss",
    "reference-is-policy",
    "teacher-trained-along", "shapes-spread", "softmax-wrong-axis")
TRIAL = "denoise the same items through training and sampling code: the errors must agree to numerical precision"
REMEDY = Remedy(
    "Let loss and sampler use one definition of the network's output.",
    (),
    "safe",
    "one-step errors agree between training and sampling code",
)
