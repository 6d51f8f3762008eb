"""A constant ratio between two losses is a matter of units.

## What happens
One of them is summed over accumulation steps, devices, tokens or pixels, or counted in bits, the other is a mean.

## How it shows
Training over validation loss is the same factor at every evaluation.

## What else looks like this
Overfitting and shift: there the ratio changes with time.

## When this is wrong
The factor is no whole number of anything in the run and drifts.

## Fix
Nothing to mend in the training. Divide before comparing.

## Trial
None needed: the ratio of the two series decides.

## References
- louaaron/Score-Entropy-Discrete-Diffusion, losses.py, graph_lib.py and noise_lib.py.
- huggingface/transformers pull request 34191 and issues 34263 and 35207 (loss too large by a constant
  factor).
"""

from __future__ import annotations

from wheeltapper.rules.causes import Case

ID = "normal-loss-units"
AREA = "logging"
NORMAL = True


def expect(case: Case) -> str:
    found = case.found("units-differ")
    harder = ("augment.mixup", "augment.cutmix", "loss.label_smoothing")
    if not found or any(isinstance(v := case.knob(knob), (int, float)) and v > 0 for knob in harder):
        return ""  # mixed and smoothed labels keep a training loss several times the validation loss by themselves
    ratio = found[0].numbers.get("ratio", 0.0)
    return (
        f"a training loss {ratio:.3g} times the validation loss is expected here because the factor is the same at every "
        "evaluation: a sum against a mean, not a gap"
    )
