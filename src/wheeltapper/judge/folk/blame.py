"""When people look for someone to blame: which kind of trouble invites which kind of folk rule."""

from __future__ import annotations

from wheeltapper.rules.causes import Case

# Signs of a training that became worse; a note is no trouble.
WORSE = (
    "diverged", "spiked", "slow-rise", "above-start", "oscillating", "declined-after-peak", "collapsed", "not-finite",
)  # fmt: skip
# Signs of a score that is bad: what people explain with the average, the schedule or the precision.
POOR = ("below-baseline", "never-left-zero", "at-chance", "plateau", *WORSE)


def worse(case: Case) -> bool:
    return _any(case, WORSE)


def poor(case: Case) -> bool:
    """A bad score; or settings alone, which are read for what might go wrong."""
    return _any(case, POOR) or not case.run.series


def poor_score(case: Case) -> bool:
    """A bad score on held-out data, or settings alone."""
    held_out = {name for name, series in case.run.series.items() if series.split in ("val", "test")}
    return any(f.severity != "note" and f.series in held_out for f in case.found(*POOR)) or not case.run.series


def _any(case: Case, ids: tuple[str, ...]) -> bool:
    return any(f.severity != "note" for f in case.found(*ids))
