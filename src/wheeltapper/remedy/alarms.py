"""Thresholds that ask for a look at once, each with its reason, none inside what the plan promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from wheeltapper.reading.record import Ints
from wheeltapper.remedy.compared import FEWEST, SPREAD, judged, rounded
from wheeltapper.remedy.expect import Next
from wheeltapper.remedy.options import Onset
from wheeltapper.remedy.plan import Band, Warn
from wheeltapper.run.model import Series
from wheeltapper.study.statistics import badness, noise_of, running_median

SMOOTH = 5  # rows: one lucky batch does not make a best


def warnings(following: Next, expected: Sequence[Band]) -> tuple[Warn, ...]:
    """Thresholds that ask for a look at once. None of them lies inside what is expected."""
    out = []
    for series in judged(following.study):
        if series.quantity == "loss" and series.split == "train":
            reason = "a loss that is not finite does not come back by itself"
            out.append(Warn(series.name, reason, not_finite=True))
        if following.comparable(series):
            out += _worse(following, series)
    out += _norm(following)
    return tuple(w for w in out if not contradicts(w, expected))


def _worse(following: Next, series: Series) -> Iterator[Warn]:
    """A score that is worse than it was in the later half of what was sound."""
    onset = following.onset
    past = _calm(series, onset)
    if onset.at is None or onset.clock is None or len(past) < 2 * FEWEST:
        return
    track, values = series.on(onset.clock), series.values[past]
    assert track is not None
    start = float(track[past][len(past) // 2])
    total = following.total_on(onset.clock)
    if total is not None and start * following.slower >= total:
        return  # so much slower that the run ends before
    late = values[len(values) // 2 :]
    margin = SPREAD * noise_of(values).sigma
    down = series.better == "down"
    worst = rounded(float(late.max() + margin) if down else float(late.min() - margin))
    if not down and worst <= 0 <= float(series.values[series.finite].min()):
        return  # a share cannot fall so far
    reason = (
        f"worse than every value of the old run from {onset.clock} {start:,.10g} to the last before {onset.words}, "
        f"by {SPREAD:g} times the noise"
    )
    yield Warn(
        series.name, reason, worst if down else None, None if down else worst,
        after=start * following.slower, clock=onset.clock,
    )  # fmt: skip


def _norm(following: Next) -> Iterator[Warn]:
    study, onset = following.study, following.onset
    norm, loss = study.maybe("grad_norm"), study.maybe("train_loss")
    track = norm.on(onset.clock) if norm is not None and onset.clock else None
    if norm is None or track is None or onset.at is None:
        return
    past = norm.finite & onset.before(track)
    calm = _calm(loss, onset) if loss is not None else np.zeros(0, dtype=np.int64)
    along = loss.on(onset.clock) if loss is not None and onset.clock else None
    if along is not None and len(calm):
        past &= track <= float(along[calm[-1]])
    if int(past.sum()) < 4 * FEWEST:
        return
    top = float(norm.values[past].max())
    reason = (
        f"twice the largest gradient norm of the old run before {onset.words}; a norm rises steps before the loss does"
    )
    yield Warn(norm.name, reason, above=rounded(2 * top))


def _calm(series: Series, onset: Onset) -> Ints:
    """The rows of the sound stretch, up to where it was last as good as at its best.

    A loss that turned NaN may have grown for a while before: such rows set no threshold.
    """
    track = series.on(onset.clock) if onset.clock else None
    if track is None or series.better not in ("up", "down"):
        return np.zeros(0, dtype=np.int64)
    past = np.flatnonzero(series.finite & onset.before(track))
    if not len(past):
        return past
    smooth = running_median(badness(series.values[past], series.better), SMOOTH)
    near = smooth <= smooth.min() + SPREAD * noise_of(series.values[past]).sigma
    return past[: int(np.flatnonzero(near)[-1]) + 1]


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
