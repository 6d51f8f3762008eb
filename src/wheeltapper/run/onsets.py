"""Where troubles begin, and where checkpoints lie, on one clock. Rows of one run are counted by steps here and by epochs there, and the smaller of
two numbers on two clocks is no earlier moment."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import numpy as np

from wheeltapper.finding import Finding
from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Checkpoint, Run


def moved(run: Run, finding: Finding, at: float, clock: ClockName) -> float | None:
    """A position on the clock of a finding as one on `clock`, along its own rows or any that are counted both ways."""
    if finding.clock in (None, clock):
        return at
    own = run.series.get(finding.series or "")
    for series in (*([own] if own is not None else []), *run.series.values()):
        there = series.moved(at, cast(ClockName, finding.clock), clock)
        if there is not None:
            return there
    return None


def began(run: Run, findings: Iterable[Finding], clock: ClockName) -> list[tuple[float, Finding]]:
    """The findings whose onset can be told on `clock`, with that, the earliest first.

    One trouble often shows in rows counted by steps and in rows counted by epochs: of one sign, those on this clock
    are asked first.
    """
    by_sign: dict[str, tuple[list[tuple[float, Finding]], list[tuple[float, Finding]]]] = {}
    for f in findings:
        at = None if f.onset is None else moved(run, f, f.onset, clock)
        if at is not None:
            native = f.clock in (None, clock)
            by_sign.setdefault(f.id, ([], []))[0 if native else 1].append((at, f))
    kept = [one for native, other in by_sign.values() for one in native or other]
    return sorted(kept, key=lambda one: one[0])


def from_start(run: Run, finding: Finding) -> bool:
    """Whether a sign is there from the first value of its series on."""
    series = run.series.get(finding.series or "")
    return series is not None and finding.onset is not None and finding.onset <= float(np.nanmin(series.at))


def sound_until(run: Run, finding: Finding, clock: ClockName) -> float | None:
    """The last row before a finding: what lies between that and its onset may belong to either side.

    None: it is there from the first row on, or is not seen in rows.
    """
    series = run.series.get(finding.series or "")
    if series is None or finding.onset is None:
        return None
    before = series.at[series.at < finding.onset]
    return moved(run, finding, float(before.max()), clock) if before.size else None


def position(checkpoint: Checkpoint, clock: str | None, run: Run) -> float | None:
    """Where a checkpoint lies on a clock, where the record lets us say."""
    per_epoch = run.fact("steps_per_epoch")
    step, epoch = checkpoint.step, checkpoint.epoch
    if clock == "epoch":
        return epoch if epoch is not None else (step / per_epoch if step is not None and per_epoch else None)
    if clock in ("step", "micro_step"):
        return step if step is not None else (epoch * per_epoch if epoch is not None and per_epoch else None)
    return None
