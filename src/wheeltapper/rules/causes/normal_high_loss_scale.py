"""A high or rising loss scale is a sign of health.

## What happens
A dynamic scaler doubles its scale after 2000 clean steps and halves it on each overflow. A high scale is a long
record of steps without overflow. In bf16, where a scaler is not needed, it doubles without limit.

## How it shows
The scale is 2^17 or more and does not fall.

## What else looks like this
A collapsing scale: it falls, many times in a row.

## When this is wrong
The scale falls by several halvings and does not come back.

## Fix
Nothing to mend.

## Trial
None needed: a step that passes at scale S shows that no gradient exceeds 65504/S.

## References
- PyTorch, torch/amp/grad_scaler.py.
- Nichol and Dhariwal 2021, Improved Denoising Diffusion Probabilistic Models (arXiv:2102.09672;
  openai/improved-diffusion).
- louaaron/Score-Entropy-Discrete-Diffusion, losses.py, graph_lib.py and noise_lib.py.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.rules.causes import Case
from wheeltapper.run.model import Series

ID = "normal-high-loss-scale"
AREA = "precision"
NORMAL = True
HIGH = 2.0**17  # twice the first value of torch's scaler


def expect(case: Case) -> str:
    scale: Series | None = case.get("loss_scale")
    if scale is None or case.found("scale-collapse"):
        return ""
    x = scale.values[scale.finite]
    last = float(x[-1])
    if last < HIGH or last < float(x.max()) / 4:
        return ""
    if case.knob("precision") == "bf16":
        return f"a loss scale of {last:.3g} means nothing in bf16: it doubles as long as nothing overflows"
    return (
        f"a loss scale of 2^{np.log2(last):.0f} is expected of steps that do not overflow: no gradient of the last one "
        f"was above 65504/scale, {65504 / last:.2g}"
    )
