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

from collections.abc import Iterable

from wheeltapper.causes import Case, Excluded
from wheeltapper.finding import Evidence, Remedy

ID = "clip-never-read"
AREA = "clipping"
EXPLAINS = ("diverged", "not-finite", "spiked", "collapsed", "grad-norm-growth")
PRIOR = -2.5
TRIAL = "set the threshold to 1e-6 for a few steps: with SGD the loss must stop moving"


def weigh(case: Case) -> Iterable[Evidence] | Excluded:
    found = [f for f in case.audited("option-never-used", "config-key-never-read") if "clip" in f.summary.lower()]
    if not found:
        return Excluded("no clip setting is known to be unread")
    # That the clip is missing is certain; that a clip would have prevented this is not: hence no proof.
    out = [Evidence(4.0, found[0].summary, "code", found[0].places)]
    if case.found("spiked", "not-finite", "grad-norm-growth"):
        out.append(Evidence(0.5, "the trouble is of the kind that a clip is for", "kind"))
    norm, limit = case.get("grad_norm"), case.knob("clip.norm")
    if norm is not None and isinstance(limit, (int, float)) and limit > 0:
        over = norm.values[norm.finite] > limit
        if not over.any():
            return Excluded(f"no gradient norm exceeds the threshold of {limit:g}: the clip would have done nothing")
    return out


def remedies(case: Case) -> tuple[Remedy, ...]:
    return (
        Remedy(
            "Wire the clip under the name that the trainer reads.",
            (),
            "safe",
            "spikes of the gradient norm no longer reach the loss",
        ),
    )
