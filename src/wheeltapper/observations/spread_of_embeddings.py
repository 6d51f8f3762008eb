"""The spread of embeddings.

## Definition
log10 of the last logged standard deviation of embeddings over the first.

## Derivation
Embeddings that all become one point have no spread: collapse of representation learning.

## Healthy band
Above −0.7.

## When it misleads
Embeddings that are not normalised and shrink as a whole.
"""

from __future__ import annotations

import math

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "learning"
EDGES = (-1.5, -0.7, -0.2)
BAND = (-0.7, None)


def observe(run: Run) -> Reading | Unknown:
    words = ("emb", "feat", "repr", "z_", "latent", "proj")
    found = [
        s
        for s in run.series.values()
        if ("std" in s.raw.lower() or "spread" in s.raw.lower() or "rank" in s.raw.lower())
        and any(w in s.raw.lower() for w in words)
        and int(s.finite.sum()) >= 4
    ]
    if not found:
        return Unknown("no spread of embeddings is logged", ("the standard deviation of embeddings",))
    x = np.abs(found[0].values[found[0].finite])
    early, late = float(np.median(x[: max(1, len(x) // 10)])), float(np.median(x[-max(1, len(x) // 10) :]))
    return Reading(
        math.log10(max(late, 1e-9) / max(early, 1e-9)),
        f"{found[0].raw} went from {early:.3g} to {late:.3g}",
        series=found[0].name,
    )
