"""The noise that a diffusion model is trained on against the published one.

## Definition
Largest of |P_mean + 1.2| / 1.2, |log2(P_std / 1.2)| and |log2(sigma_max / 80)| / 4, of those that are set.

## Derivation
Sampling starts at noise far above the data and ends far below: what was not trained in between cannot be sampled. The
published values cover data of unit scale.

## Healthy band
Below 0.6.

## When it misleads
Latents and data of another scale, for which other values were tuned.
"""

from __future__ import annotations

import math

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, number
from wheeltapper.settings.knobs import Knobs

ABOUT = "learning"
SETTING = True
EDGES = (0.6, 1.2)
BAND = (None, 0.6)
USUAL = {"diffusion.P_mean": -1.2, "diffusion.P_std": 1.2, "diffusion.sigma_max": 80.0}


def observe(knobs: Knobs) -> Reading | Unknown:
    known = {knob: value for knob in USUAL if (value := number(knobs.value(knob))) is not None}
    parts = []
    for knob, value in known.items():
        if knob == "diffusion.P_mean":
            parts.append((abs(value + 1.2) / 1.2, knob))
        elif value > 0:
            size = abs(math.log2(value / USUAL[knob]))
            parts.append((size / (4.0 if knob.endswith("max") else 1.0), knob))
    if not parts:
        return Unknown("the range of the noise is not set", ("P_mean, P_std or sigma_max",))
    size, knob = max(parts)
    text = f"{knob.split('.')[1]} is {known[knob]:g}; the published value is {USUAL[knob]:g}"
    return Reading(size, text, places=(knobs.place(knob),))
