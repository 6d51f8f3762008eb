"""The average of the weights has the normalisation statistics it began with.

## What it sees
Running means and variances of batch norm that have the same bits in the averaged (EMA) weights of an early and a late
checkpoint, while those of the model itself moved.

## Why it matters
Averaged weights with the statistics of the untrained model answer at random in eval mode. Everything that is measured or deployed with the
average is wrong, however well the model itself trains. Copying only parameters into the average does this: statistics are buffers.

## How it decides
Bit by bit over all running means and variances of both. Ill where every one of the average stands still and every one of the
model moved; anything between is no finding.

## When it is wrong
If whatever evaluates the average takes the statistics from the model or computes them anew. The log's scores show whether it does.

## References
- PyTorch, torch/optim/swa_utils.py (`use_buffers`, `update_bn`).
- timm, timm/utils/model_ema.py (copies the whole state, buffers included).
- Izmailov et al. 2018, Averaging Weights Leads to Wider Optima (arXiv:1803.05407), section 3.2.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding, Place, Unknown
from wheeltapper.study.weights import Weights

ID = "average-statistics-stand-still"
LIVE = False


def look(weights: Weights) -> Answer:
    average, own = weights.of("ema", buffers=True), weights.of("raw", buffers=True)
    if not average or not own:
        return Unknown("no checkpoint holds normalisation statistics of an average beside those of the model")
    still, moved = sum(w.same == 1.0 for w in average), sum(w.same < 1.0 for w in own)
    if still < len(average) or moved < len(own):
        return Clear(f"{len(average) - still} of {len(average)} statistics of the average moved between {weights.span}")
    text = (
        f"all {len(average)} running statistics of the average have the same bits at {weights.clock} {weights.since:,.10g} "
        f"and {weights.until:,.10g}, while those of the model moved: in eval mode the average is not the model's"
    )
    return Finding(
        ID, text, severity="ill", grade="is", numbers={"tensors": float(len(average))},
        places=tuple(Place(c.path) for c in weights.files),
    )  # fmt: skip


def _state(shift: float) -> dict[str, np.ndarray]:
    return {"conv.weight": np.arange(1.0, 10) + shift, "bn.running_mean": np.zeros(4) + shift, "bn.running_var": np.ones(4) + shift}


CASES = {
    "finding": {
        "checkpoints": {
            "net_g_10.safetensors": (_state(0.1),),
            "net_g_90.safetensors": (_state(0.9),),
            "net_g_ema_10.safetensors": (_state(0.0),),
            "net_g_ema_90.safetensors": (_state(0.5) | {k: v for k, v in _state(0.0).items() if "running" in k},),
        },
        "expect": "ill",
    },
    "clear": {
        "checkpoints": {
            f"net_g{ema}_{step}.safetensors": (_state(step / 100),) for ema in ("", "_ema") for step in (10, 90)
        },
    },
    "unknown": {"checkpoints": {f"net_g_{step}.safetensors": (_state(step),) for step in (10, 90)}},
}
