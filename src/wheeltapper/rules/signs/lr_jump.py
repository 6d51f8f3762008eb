"""The learning rate jumps where no schedule would.

## What it sees
A sudden change of the logged learning rate, in the middle of a launch, that is no step of a step schedule and
no warm restart.

## Why it matters
Either the schedule is driven by two hands (a callback and the loop, a hook that resets it), or the launch was
restarted without saying so. Both change training in a way that the settings do not show.

## How it decides
The shape of the logged rate names cuts (level on both sides), restarts (a finished decay goes back up) and
jumps (neither). A jump counts from a factor of 1.5 on, the same as for jumps at a resume, away from the ends
of the log and from every known resume. A rise from a level that was held since the first row is a constant
warm-up. A rate that is irregular throughout (noise added on purpose, a rate that follows a metric) has no
jumps of its own.

## When it is wrong
A schedule made of pieces, an LR finder before training, a rate edited by hand on purpose.

## References
- PyTorch, torch/optim/lr_scheduler.py.
- PyTorch, torch/optim/optimizer.py (load_state_dict).
- OPT-175B logbook (facebookresearch/metaseq, projects/OPT/chronicles).
"""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Run, Series
from wheeltapper.simulate.lr_shape import LrShape

ID = "lr-jump"
LIVE = True
RATIO = 1.5


def look(run: Run, lr: Series, lr_shape: LrShape) -> Answer | list[Finding]:
    if lr_shape.kind in ("irregular", "cyclic") and len(lr_shape.jumps) > 2:
        return Clear(f"the learning rate is irregular by nature ({len(lr_shape.jumps)} sudden changes)")
    resumes = [s.start for s in run.segments if s.kind != "first" and s.clock == lr.clock]
    out = []
    for jump in lr_shape.jumps:
        ratio = jump.ratio
        index = int(np.searchsorted(lr.at, jump.at))
        if not 3 <= index <= len(lr) - 3 or max(ratio, 1 / max(ratio, 1e-12)) < RATIO:
            continue
        if ratio > 1 and np.ptp(lr.values[:index]) <= 1e-3 * jump.before:
            continue
        if any(jump.before_at <= start <= jump.at for start in resumes):
            continue
        text = f"the learning rate jumps from {jump.before:.4g} to {jump.after:.4g} at {where(lr, index)}, {ratio:.3g}x, and the record shows no resume there"
        out.append(seen(ID, lr, text, severity="watch", grade="is", onset=index, ratio=min(ratio, 1e9)))
    return out[:3] or Clear("the learning rate does not jump")


_fall = [1e-3 * (1 - i / 200) for i in range(200)]
CASES = {
    "finding": {"lr": [*_fall[:120], *[v * 2.2 for v in _fall[120:]]]},
    "clear": {"lr": _fall},
    "near miss": {"lr": [0.1] * 30 + [0.01] * 30 + [0.001] * 30, "expect": "clear"},
    "unknown": {"train/loss": [1.0, 0.9]},
}
