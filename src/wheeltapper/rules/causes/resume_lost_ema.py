"""The averaged weights were lost at a resume.

## What happens
The model and the optimizer are restored, the average of the weights is not: it begins again at a copy of the fresh or of
the restored model. What is evaluated and shipped is the average, so the scores fall although training goes on unharmed.

## How it shows
The held-out score jumps at the first evaluation after a resume and heals as the average forgets its new start (a few
times 1/(1 - decay) updates), while the training loss stays in its band.

## What else looks like this
A lost optimizer state (the training loss jumps as well), other validation data, overfitting (no jump, and no healing).

## When this is wrong
The training loss jumps at the resume too, or no average is kept.

## Fix
Save the average with the checkpoint and load it; where it is lost, begin it at the restored weights and with a ramp.

## Trial
Evaluate the checkpoint of the resume and the first one after it, raw weights and averaged: only the averaged ones fall.

## References
- PyTorch, torch/optim/swa_utils.py (AveragedModel is a module with a state of its own).
- timm, timm/utils/model_ema.py (huggingface/pytorch-image-models): the average is restored by hand.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "resume-lost-ema"
AREA = "resume"
ABOUT = "evaluation"
EXPLAINS = ("declined-after-peak", "val-spike", "collapsed", "restart-jump")
SHOWS = {"restart-jump": "seen", "held-out-break": "high", "train-break": "in"}
TRIAL = "evaluate the checkpoints around the resume with raw and with averaged weights: only the averaged ones fall"
REMEDY = Remedy(
    "Save the averaged weights with the checkpoint and load them at a resume.",
    (),
    "safe",
    "the held-out score continues within its band across the resume",
)
