"""Lasting steps of a curve, held against the noise before them."""

from __future__ import annotations

import numpy as np

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading
from wheeltapper.study.outcome import Curve
from wheeltapper.study.statistics import noise_of

SPOTS = 40  # positions that are tried
BEFORE = 8  # values that a level and its noise need
LAST = 3  # rows: fewer may be one bad batch
LEAST = 0.01  # of what was won: a score that stands still has no scatter to measure by


def largest_break(curve: Curve) -> Reading | Unknown:
    """The largest lasting step up, in scatters of the stretch before it."""
    x, n = curve.error, len(curve)
    if n < 2 * BEFORE:
        return Unknown("too few values to tell a step from noise", ("a longer record",))
    best, spot, least = 0.0, n - 1, LEAST * max(curve.gain, 0.0)
    for i in np.unique(np.linspace(BEFORE, n - 3, min(SPOTS, n - BEFORE - 3)).astype(int)):
        stretch = x[max(0, i - max(BEFORE, n // 5)) : i]
        level, after = float(np.median(stretch)), float(np.median(x[i:]))
        end = float(np.median(x[-max(3, (n - i) // 2) :]))
        size = min(after, end) - level
        scale = max(noise_of(stretch).sigma, 0.003 * abs(level), least, 1e-12)
        if size / scale > best:
            best, spot = size / scale, int(i)
    text = f"from {curve.series.clock} {curve.at(spot):g} on {curve.series.name} stays {best:.2g} scatters worse than before"
    return Reading(best, text, 1.0, curve.series.name, curve.series.clock, curve.at(spot))


def fall_at_end(curve: Curve) -> Reading | None:
    """How far each of the last rows lies above what came before, in scatters."""
    x = curve.error
    if len(x) < BEFORE + LAST:
        return None
    before = x[:-LAST][-max(BEFORE, len(x) // 5) :]
    scale = max(noise_of(before).sigma, 0.01 * abs(float(np.median(before))), LEAST * max(curve.gain, 0.0), 1e-12)
    value = (
        (float(x[-LAST:].min()) - float(np.max(before))) / scale
        if len(x) < 30
        else (float(x[-LAST:].min()) - float(np.median(before))) / scale
    )
    at = curve.at(len(curve) - LAST)
    text = f"the last {LAST} values of {curve.series.name} lie {value:.2g} scatters above those before"
    return Reading(value, text, 1.0, curve.series.name, curve.series.clock, at)
