"""One term of the loss rises while the total falls.

## What it sees
A component of the training loss whose level at the end is clearly above its level at the start, though
the total loss fell.

## Why it matters
The optimizer pays for the total with this term. When the term is a constraint (a boundary condition, a
regression target), the model gets worse at it while the curve looks fine.

## How it decides
Block medians: the last tenth lies above the first eighth by 50 % or more and by ten times the noise of a
block, the term is still at or near its highest level at the end, and the term is not negligible (a tenth of
the total at least). The start is the first eighth, not the first row, because terms move in the first
steps while the others are still large.

It never makes a run ill: the box loss of a healthy two-stage detector rises in its first epochs, because
only then boxes match at all.

## When it is wrong
Terms that rise by design: KL and entropy terms, adversarial terms, annealed weights, regularisers. Names
that say so are left out.

## References
- Bowman et al. 2016, Generating Sentences from a Continuous Space (arXiv:1511.06349).
- Karras et al. 2024, Analyzing and Improving the Training Dynamics of Diffusion Models (arXiv:2312.02696;
  NVlabs/edm2).
- What dominates is the gradient of a part, not its value.
"""

from __future__ import annotations

import math
import re

import numpy as np

from wheeltapper.finding import Answer, Clear, Finding
from wheeltapper.rules.signs import seen, where
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import block_medians, noise_of

ID = "part-rises"
LIVE = False
BY_DESIGN = re.compile(
    r"kl|entrop|gan|adv|reg|commit|kld|latent|aux|fake|real|disc|gen|weight|penalty|norm|vq|tv", re.IGNORECASE
)
RISE, SHARE = 0.5, 0.1


def look(train_loss: Series, loss_parts: tuple[Series, ...], shifting: str = "") -> Answer | list[Finding]:
    total = train_loss.values[train_loss.finite]
    if len(total) < 16 or np.median(total[-len(total) // 8 :]) >= np.median(total[: max(1, len(total) // 8)]):
        return Clear("the total did not fall, so its parts are not traded against it")
    end_total = abs(float(np.median(total[-max(3, len(total) // 10) :])))
    out = []
    for part in loss_parts:
        finding = _one(part, end_total)
        if finding is not None and not shifting:
            out.append(finding)
    return sorted(out, key=lambda f: -f.numbers["factor"])[:3] or Clear("no component of the loss rises")


def _one(part: Series, end_total: float) -> Finding | None:
    x = part.values[part.finite]
    if len(x) < 16 or BY_DESIGN.search(part.part or ""):
        return None
    middles, levels = block_medians(x, 40)
    eighth = max(1, len(levels) // 8)
    start = float(np.median(levels[:eighth]))
    end = float(np.median(levels[-max(1, len(levels) // 10) :]))
    noise = noise_of(x)
    block = max(noise.sigma / math.sqrt(max(1.0, len(x) / len(levels))), 1e-12)
    if start <= 0 or end < (1 + RISE) * start or end - start < 10 * block or end < SHARE * end_total:
        return None
    if end < 0.8 * float(levels.max()):
        return None  # it has come down from its peak: a hump, not a rise
    half = start + 0.25 * (end - start)
    onset = int(middles[int(np.argmax(levels > half))])
    index = int(np.flatnonzero(part.finite)[onset])
    text = f"{part.name} rises from {start:.4g} to {end:.4g} (from {where(part, index)} on) while the total loss falls"
    return seen(
        ID,
        part,
        text,
        severity="watch",
        grade="suspected",
        onset=index,
        p=1e-6,
        first=start,
        last=end,
        factor=end / start,
    )


_n = 80
CASES = {
    "finding": {
        "train/loss": [1.0 * 0.97**i + 0.3 for i in range(_n)],
        "train/loss_edge": [0.06 + 0.0012 * i for i in range(_n)],
    },
    "clear": {
        "train/loss": [1.0 * 0.97**i + 0.3 for i in range(_n)],
        "train/loss_edge": [0.2 * 0.98**i for i in range(_n)],
    },
    "near miss": {
        "train/loss": [1.0 * 0.97**i + 0.3 for i in range(_n)],
        "train/loss_kl": [0.06 + 0.0012 * i for i in range(_n)],
        "expect": "clear",
    },
    "unknown": {"train/loss": [1.0, 0.9, 0.8]},
}
