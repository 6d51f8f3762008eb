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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.causes._look import fell
from wheeltapper.finding import Evidence, Remedy

ID = "objective-mismatch"
AREA = "objective"
EXPLAINS = ("worse-than-trivial", "diverged", "spiked", "declined-after-peak", "first-loss-odd", "below-baseline")
PRIOR = -4.0
TRIAL = "denoise the same items through training and sampling code: the errors must agree to numerical precision"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = case.audited("objective-preconditioner-mismatch")
    task = case.get("task")
    below = [f for f in case.found("below-baseline", severity="ill") if "input itself" in f.summary]
    if not found and not below and (task is None or not task.diffusion):
        return Excluded("not known to be a diffusion model, and no code shows two definitions of the output")
    out = []
    drop = fell(case.get("train_loss"))
    if below and drop is not None and drop > 0.3:
        text = f"the training loss fell by {drop:.0%}, and what the evaluation makes of the network is worse than its input"
        out.append(Evidence(5.0, text, "use", below[0].places))
    # A suspected finding rests on two definitions that contradict each other in the text of one program; which
    # of them is built is open, so it is strong and not decisive.
    return out + [
        Evidence(8.0 if f.grade == "is" else 4.5, f.summary, "proof" if f.grade == "is" else "code", f.places)
        for f in found
    ]


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy("Let loss and sampler use one definition of the network's output.", (), "safe",
               "one-step errors agree between training and sampling code"),
    )  # fmt: skip
