"""Weights and optimizer state are kept in half precision.

## What happens
fp16 has eleven bits. An update smaller than 1/2048 of its weight is rounded away, squared gradients below 6e-8 become
zero in Adam's second moment, and everything above 65504 is infinite. No master copy in fp32 keeps what is lost.

## How it shows
NaN within the first hundreds of steps under Adam (a division by a second moment of zero), or a loss that stops falling
as the rate decays.

## What else looks like this
A loss scale that collapses: there the weights are fp32 and the run is mixed. bf16 weights stop moving, too, but do not
overflow.

## When this is wrong
A scaler or autocast is at work, so that fp16 is used inside the step only.

## Fix
Mixed precision: fp32 weights under autocast; bf16 where the device has it.

## Trial
Fifty steps with fp32 weights and autocast, same data and seed: the loss falls and stays finite.

## References
- Micikevicius et al. 2018, Mixed Precision Training (arXiv:1710.03740).
- PyTorch, torch/amp/autocast_mode.py.
"""

from __future__ import annotations

from wheeltapper.finding import Edit, Remedy
from wheeltapper.rules.causes import Case

ID = "pure-fp16"
AREA = "precision"
ABOUT = "learning"
EXPLAINS = (
    "not-finite", "diverged", "stuck-from-start", "too-slow", "plateau", "barely-learned", "weights-stand-still",
    "hidden-nan", "at-chance",
)  # fmt: skip
SHOWS = {"half-precision": "high"}
FORBIDS = {"loss-scale-fall": "high", "scale-collapse": "seen"}
TRIAL = "fifty steps with fp32 weights under autocast, same data and seed"


def remedies(case: Case) -> tuple[Remedy, ...]:
    edits = (Edit("amp.enabled", False, True, "fp32 weights, fp16 steps"),) if case.knob("amp.enabled") is False else ()
    text = "Keep the weights in fp32 and use autocast with a loss scaler."
    return (Remedy(text, edits, "try", "the loss stays finite and falls through the first hundreds of steps"),)
