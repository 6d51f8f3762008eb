"""A part of the model was never given to the optimizer.

## What happens
A head that was replaced after the optimizer was built, modules in a plain Python list, a parameter group
that was forgotten: the part gets gradients and is never stepped.

## How it shows
The weight norm of the part repeats to all digits while its gradient norm is above zero and the rest moves.
The loss falls as far as the rest can carry it, then stays.

## What else looks like this
Frozen parameters (no gradient reaches them), a learning rate of zero for one group, weights in bf16 that
round each step away.

## When this is wrong
The part's weights change, or no gradient reaches it.

## Fix
Build the optimizer after the last change of the model; compare its parameters with those that want a gradient.

## Trial
One step: which tensors that have a gradient did not change?

## References
- PyTorch, torch/optim/optimizer.py (load_state_dict).
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "params-not-in-optimizer"
AREA = "model"
ABOUT = "learning"
EXPLAINS = (
    "barely-learned", "at-chance", "at-prior", "stuck-from-start", "plateau", "constant-metric", "too-slow",
    "weights-stand-still", "average-stands-still",
)  # fmt: skip
SHOWS = {"weights-stand-still": "seen"}
FORBIDS = {"weights-stand-still": "clear"}
PROVED_BY = (
    "params-not-in-optimizer",
    "network-left-out",
    "optimizer-before-parameters",
    "optimizer-of-another-network",
)
TRIAL = "one step: list the tensors that have a gradient and did not change"
REMEDY = Remedy("Build the optimizer after the model is complete.", (), "safe", "every weight norm moves")
