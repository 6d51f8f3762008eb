"""Each promise of a plan against the new run: kept, broken, not yet testable, or not to be looked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wheeltapper.reading.record import Floats, Ints
from wheeltapper.remedy.plan import Band, Plan, Warn
from wheeltapper.run.model import Run, Series

CLOSE = 0.05  # of the way so far: so short a stretch of a learning curve is nearly straight, and its median its middle
Kept = Literal["kept", "broken", "not yet", "cannot look"]


@dataclass(frozen=True, slots=True)
class PromiseCheck:
    """One promise of the plan."""

    what: str
    status: Kept
    saw: str
    source: str = ""
    metric: str = ""


def resumed(run: Run, plan: Plan) -> Iterator[PromiseCheck]:
    """Whether a run that was to continue a checkpoint really did."""
    if plan.option != "C" or plan.resume is None or plan.resume.at is None or plan.resume.clock is None:
        return
    at, clock = plan.resume.at, plan.resume.clock
    what = f"continues at {clock} {at:,.10g}"
    starts = [s.start for s in run.segments if s.kind == "resume" and s.clock == clock]
    tracks = [t for series in run.series.values() if (t := series.on(clock)) is not None]
    starts += [min(float(np.nanmin(t)) for t in tracks if np.any(np.isfinite(t)))] if tracks else []
    if not starts:
        yield PromiseCheck(what, "cannot look", f"nothing is logged by {clock}", "the checkpoint of the plan")
        return
    nearest = min(starts, key=lambda start: abs(start - at))
    # The first line comes a log interval after the checkpoint.
    close = abs(nearest - at) <= max(0.1 * at, 5.0)
    yield PromiseCheck(
        what, "kept" if close else "broken", f"it began at {nearest:,.10g}", "the checkpoint of the plan"
    )


def promise(run: Run, band: Band, ended: bool) -> PromiseCheck:
    def told(status: Kept, saw: str) -> PromiseCheck:
        what = f"{band.metric} {_edges(band)} at {band.clock} {band.at:,.10g}"
        return PromiseCheck(what, status, saw, band.source, band.metric)

    series = run.series_named(band.metric)
    track = None if series is None else series.on(band.clock)
    if series is None or track is None:
        return told("cannot look", "it is not logged" if series is None else f"it is not logged by {band.clock}")
    good = np.flatnonzero(np.isfinite(track))
    end = float(np.nanmax(track)) if len(good) else 0.0
    if end + 1e-9 < band.at - band.within:
        if ended:
            return told("cannot look", f"the run ended at {band.clock} {end:,.10g}")
        return told("not yet", f"the run is at {band.clock} {end:,.10g}")
    about = _about(series, track, band)
    value = float(np.median(series.values[about]))
    inside = (
        math.isfinite(value) and (band.low is None or value >= band.low) and (band.high is None or value <= band.high)
    )
    first, last = (f"{spot:,.10g}" for spot in (float(track[about].min()), float(track[about].max())))
    saw = f"{value:.4g} at {first}" if len(about) == 1 else f"{value:.4g}, the median of {first} to {last}"
    return told("kept" if inside else "broken", saw)


def _about(series: Series, track: Floats, band: Band) -> Ints:
    """The row nearest to a position; for a noisy score its neighbours too, as many on one side as on the other.

    So a curve that rises or falls is not held to what it was before. At its end there is no other side: then only rows
    that are close count.
    """
    rows = np.flatnonzero(np.isfinite(track))
    rows = rows[np.argsort(track[rows], kind="stable")]
    away = np.abs(track[rows] - band.at)
    spot = int(np.argmin(away))
    if series.quantity == "lr":
        return rows[spot : spot + 1]
    near = away <= max(CLOSE * abs(band.at), band.within)
    sides = min(int(near[:spot].sum()), int(near[spot + 1 :].sum()), 2)
    if sides:
        return rows[spot - sides : spot + sides + 1]
    alone = np.flatnonzero((away <= CLOSE * abs(band.at)) | (np.arange(len(rows)) == spot))
    return rows[alone[np.argsort(away[alone], kind="stable")[:5]]]


def _edges(band: Band) -> str:
    if band.low is not None and band.high is not None:
        return f"between {band.low:.4g} and {band.high:.4g}"
    return f"at least {band.low:.4g}" if band.low is not None else f"at most {band.high:.4g}"


def rung(run: Run, warnings: Sequence[Warn]) -> Iterator[str]:
    """Thresholds of the plan that were passed, with the first place."""
    for warning in warnings:
        series = run.series_named(warning.metric)
        track = None if series is None else series.on(warning.clock) if warning.clock else series.at
        if series is None or track is None:
            continue
        values = series.values
        bad = ~np.isfinite(values) if warning.not_finite else np.zeros(len(values), dtype=bool)
        if warning.above is not None:
            bad |= values > warning.above
        if warning.below is not None:
            bad |= values < warning.below
        if warning.after is not None:
            bad &= track >= warning.after
        if bad.any():
            first = int(np.flatnonzero(bad)[0])
            yield f"{warning.metric} is {values[first]:.4g} at {track[first]:,.10g}, {_times(int(bad.sum()))}: {warning.reason}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"the first of {count:,}"
