"""The loss itself is undefined for some inputs: a logarithm of zero, a root at zero, a division by nothing.

## What happens
A formula leaves its domain for rare values: log(0) of a probability or a noise level at the end of its range, sqrt at 0
(infinite gradient), 0/0 of an empty mask. The batch is sound; the formula is not.

## How it shows
NaN or inf out of the blue, with a calm loss before it, also in fp32 and at a low rate; often again at the same kind of
item or at the ends of a random range.

## What else looks like this
A batch that holds NaN, an fp16 overflow, a diverging optimizer (the loss rises first).

## When this is wrong
If the replayed batch holds NaN itself.

## Fix
Clamp the argument (eps inside the logarithm or root), or keep the random variable off the end of its range.

## Trial
Replay the batch of the onset in fp32 with anomaly detection: it names the operation.

## References
PyTorch documentation, `torch.autograd.detect_anomaly`; Micikevicius et al. 2018 for the fp16 case.
"""

from __future__ import annotations

from wheeltapper.finding import Remedy

ID = "loss-not-finite"
AREA = "objective"
ABOUT = "crash"
EXPLAINS = ("not-finite",)
SHOWS = {"not-finite": "seen", "not-finite-share": "high", "explosion": "in"}
FORBIDS = {"not-finite": "clear"}
TRIAL = "replay the batch of the onset in fp32 with anomaly detection: it names the operation"
REMEDY = Remedy(
    "Keep the argument inside its domain (an eps inside the logarithm or root).", (), "try", "the run passes the onset"
)
