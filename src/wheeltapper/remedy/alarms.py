"""Thresholds that ask for a look at once, each with its reason, none inside what the plan promises."""

from __future__ import annotations

from collections.abc import Sequence

from wheeltapper.remedy.compared import FEWEST, SPREAD, judged, rounded
from wheeltapper.remedy.expect import Next
from wheeltapper.remedy.plan import Band, Warn
from wheeltapper.signals import Signals
from wheeltapper.signals.statistics import noise_of


def warnings(following: Next, expected: Sequence[Band]) -> tuple[Warn, ...]:
    """Thresholds that ask for a look at once. None of them lies inside what is expected."""
    out = []
    onset = following.onset
    for series in judged(following.run):
        if series.quantity == "loss" and series.split == "train":
            reason = "a loss that is not finite does not come back by itself"
            out.append(Warn(series.name, reason, not_finite=True))
        track = series.on(onset.clock) if onset.clock else None
        if track is None or onset.at is None:
            continue
        past = series.finite & (track < onset.at)
        if int(past.sum()) < 2 * FEWEST:
            continue
        values = series.values[past]
        late = values[len(values) // 2 :]
        sigma = noise_of(values).sigma
        worst = float(late.max() + SPREAD * sigma) if series.better == "down" else float(late.min() - SPREAD * sigma)
        reason = (
            f"worse than every value of the old run in the half before {onset.words}, by {SPREAD:g} times the noise"
        )
        above, below = (rounded(worst), None) if series.better == "down" else (None, rounded(worst))
        start = float(track[past][len(values) // 2]) * following.slower
        total = following.total_on(onset.clock)
        if total is not None and start >= total:
            continue  # so much slower that the run ends before
        out.append(Warn(series.name, reason, above, below, after=start, clock=onset.clock))
    norm = Signals(following.run).maybe("grad_norm")
    track = norm.on(onset.clock) if norm is not None and onset.clock else None
    if norm is not None and track is not None and onset.at is not None:
        past = norm.finite & (track < onset.at)
        if int(past.sum()) >= 4 * FEWEST:
            top = float(norm.values[past].max())
            reason = f"twice the largest gradient norm of the old run before {onset.words}; a norm rises steps before the loss does"
            out.append(Warn(norm.name, reason, above=rounded(2 * top)))
    return tuple(w for w in out if not contradicts(w, expected))


def contradicts(warning: Warn, expected: Sequence[Band]) -> bool:
    """Whether a warning would ring inside a band that is promised.

    >>> band = Band("loss", "step", 100.0, "x", None, 2.0)
    >>> contradicts(Warn("loss", "y", above=1.5), [band]), contradicts(Warn("loss", "y", above=2.5), [band])
    (True, False)
    """
    for band in expected:
        if band.metric != warning.metric or (warning.after is not None and band.at < warning.after):
            continue
        if warning.above is not None and band.high is not None and band.high > warning.above:
            return True
        if warning.below is not None and band.low is not None and band.low < warning.below:
            return True
    return False
