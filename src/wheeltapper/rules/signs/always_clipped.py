"""Nearly every gradient is clipped.

## What it sees
Gradient norms, logged before clipping, that lie above the clipping threshold on 95 % of the rows or more.

## Why it matters
Under SGD the threshold then sets the step: the learning rate no longer does. Under Adam a constant factor on
the gradient changes nothing, so the threshold neither tames nor hurts: lowering it is no remedy.

## How it decides
Exact: the share of rows above the threshold, at 50 rows or more. The threshold comes from the settings or
from the log. Norms that stand at the threshold itself were logged after clipping and tell nothing. 95 %:
above the half that the tuning playbook calls "extremely aggressive", and near 100 %. A
watch under plain SGD, a note otherwise.

## When it is wrong
Norms logged before the loss scale was taken out look too large (where the scale is logged, it says so and is only
suspected); clipping by value has no norm.

## References
- Godbole, Dahl, Gilmer, Shallue and Nado 2023, Deep Learning Tuning Playbook
  (google-research/tuning_playbook).
- PyTorch, torch/nn/utils/clip_grad.py.
- PyTorch, torch/amp/grad_scaler.py.
- Executed with torch 2.13: thresholds of 1e-2, 1e-3 and 1e-4 gave Adam the same result.
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Grade, Unknown
from wheeltapper.rules.signs import seen
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import Knobs

ID = "always-clipped"
LIVE = True
ROWS, SHARE = 50, 0.95
# A loss scale of 2^10 or more and norms beyond the threshold by as much: ordinary norms times the scale.
SCALED = 1024.0


def look(run: Run, grad_norm: Series, knobs: Knobs | None = None, loss_scale: Series | None = None) -> Answer:
    limit = _threshold(run, knobs)
    if limit is None:
        return Unknown("the clipping threshold is not known", ("the clipping threshold",))
    x = grad_norm.values[grad_norm.finite]
    if len(x) < ROWS:
        return Unknown(f"fewer than {ROWS} gradient norms", ("grad_norm logged more often",))
    at_limit = float(np.mean(np.abs(x - limit) <= 1e-3 * limit))
    if at_limit > 0.5 or (x.max() <= 1.001 * limit and at_limit > 0.05):
        return Unknown(f"the norm was logged after clipping to {limit:g}", ("grad_norm before clipping",))
    share = float(np.mean(x > limit))
    if share < SHARE:
        return Clear(f"{share:.0%} of the gradients exceed the threshold of {limit:g}")
    name = str(knobs.value("optimizer.name", "") if knobs is not None else "").lower()
    text = f"{share:.0%} of the gradient norms (median {np.median(x):.3g}) exceed the clipping threshold of {limit:g}"
    plain = "sgd" in name
    if plain:
        text += f": with SGD the threshold, not the learning rate, sets the step ({limit / float(np.median(x)):.2g} of it is left)"
    elif any(word in name for word in ("ada", "lamb", "lion")):
        text += f"; with {name} a constant factor on the gradient changes nothing"
    median = float(np.median(x))
    scale = float(np.median(loss_scale.values[loss_scale.finite])) if loss_scale is not None else 1.0
    scaled = scale >= SCALED and median > SCALED * limit and median / scale < 10
    if scaled:
        text += f"; without the loss scale of {scale:g} they are {median / scale:.2g}: logged before it was taken out, or clipped before"
    grade: Grade = "suspected" if scaled else "is"
    return seen(
        ID, grad_norm, text, severity="watch" if plain else "note", grade=grade, onset=0, share=share, limit=limit,
        scaled=float(scaled),
    )  # fmt: skip


def _threshold(run: Run, knobs: Knobs | None) -> float | None:
    series = next((s for s in run.series.values() if s.quantity == "clip_threshold" and s.finite.any()), None)
    if series is not None:
        return float(np.median(series.values[series.finite]))
    if knobs is None or "clip.norm" not in knobs or knobs.value("clip.mode", "norm") != "norm":
        return None
    if knobs["clip.norm"].default and ("optimizer.lr" not in knobs or knobs["optimizer.lr"].default):
        return None  # only a state file was found: its framework's defaults are no settings of this run
    value = knobs.value("clip.norm")
    return float(value) if isinstance(value, (int, float)) and value > 0 else None


_CONFIG = "max_steps: 200\nlearning_rate: 0.001\nmax_grad_norm: 1.0\nper_device_train_batch_size: 8\nlogging_steps: 1\noptim: adamw_torch\n"
CASES = {
    "finding": {"grad_norm": [4.0 + 0.5 * (i % 5) for i in range(80)], "config": _CONFIG},
    "clear": {"grad_norm": [0.4 + 0.3 * (i % 5) for i in range(80)], "config": _CONFIG},
    "after clipping": {"grad_norm": [1.0] * 70 + [0.9] * 10, "config": _CONFIG, "expect": "unknown"},
    "gradients that carry the loss scale": {
        "grad_norm": [2.0e4 + 500 * (i % 5) for i in range(80)],
        "loss_scale": [65536.0] * 80,
        "config": _CONFIG.replace("adamw_torch", "sgd"),
        "expect": "watch",
    },
    "large norms of their own": {
        "grad_norm": [2.0e4 + 500 * (i % 5) for i in range(80)],
        "config": _CONFIG.replace("adamw_torch", "sgd"),
        "expect": "watch",
    },
    "unknown": {"grad_norm": [4.0] * 80},
}
