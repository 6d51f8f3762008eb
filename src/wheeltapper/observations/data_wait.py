"""How much of a step is spent waiting for data.

## Definition
Median time of the data over the median time of the whole step.

## Derivation
A loader that keeps up costs nothing: the next batch is ready before the step ends.

## Healthy band
Below 0.15.

## When it misleads
Steps of a millisecond, where any hand-over counts.
"""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.run.model import Run

ABOUT = "efficiency"
EDGES = (0.15, 0.5)
BAND = (None, 0.15)
_DATA = re.compile(r"(?i)(^|[^a-z])(data|load(er|ing)?|fetch)_?(time|wait|t)?($|[^a-z])")
_STEP = re.compile(r"(?i)(^|[^a-z])(batch|step|iter)_?time($|[^a-z])|^time$")


def observe(run: Run) -> Reading | Unknown:
    times = [s for s in run.series.values() if s.quantity == "duration" and int(s.finite.sum()) >= 5]
    data = [s for s in times if _DATA.search(s.raw)]
    step = [s for s in times if _STEP.search(s.raw)]
    if not data or not step:
        return Unknown("the times of the data and of the step are not both logged", ("data_time and batch_time",))
    waited, whole = (float(np.median(s.values[s.finite])) for s in (data[0], step[0]))
    if whole <= 0:
        return Unknown("the time of a step is zero")
    text = f"{data[0].raw} is {waited:.3g} of {whole:.3g} a step"
    return Reading(waited / whole, text, series=data[0].name)
