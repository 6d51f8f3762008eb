"""A clip threshold is configured and nothing reads it.

## What happens
The settings name a gradient clip under a key that the trainer does not look at, or an option that the script parses
and never uses. Gradients are not clipped, though everybody believes so.

## How it shows
In code. In the record only that spikes or NaN come in a run whose settings promise a clip.

## What else looks like this
A clip that is read and does not help, clipping before unscaling, a norm that is logged before the clip.

## When this is wrong
Another program reads the key; a framework clips by default under another name.

## Fix
Wire the option, or use the name the trainer reads.

## Trial
Set the threshold to 1e-6 for a few steps: if the loss still moves as before (with SGD), it is not read.

## References
- PyTorch, torch/nn/utils/clip_grad.py.
- Transformers, src/transformers/trainer.py (huggingface/transformers).
- timm, train.py and timm/scheduler (huggingface/pytorch-image-models).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "clip-never-read"
AREA = "clipping"
ABOUT = "learning"
EXPLAINS = ("diverged", "not-finite", "spiked", "collapsed", "grad-norm-growth")
SHOWS = {"explosion": "high", "spiked": "seen"}
PROVED_BY = ("clip-after-step",)
TRIAL = "set the threshold to 1e-6 for a few steps: with SGD the loss must stop moving"
REMEDY = Remedy(
    "Wire the clip under the name that the trainer reads.",
    (),
    "safe",
    "spikes of the gradient norm no longer reach the loss",
)
