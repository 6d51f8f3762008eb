"""Scores that are logged for the averaged and for the raw weights."""

from __future__ import annotations

import re
from collections.abc import Mapping

from wheeltapper.reading.record import ClockName
from wheeltapper.run.model import Run
from wheeltapper.study.outcome import Curve, curve_of

_MARK = re.compile(r"(^|[^a-z])(model_)?(ema|swa|averaged?|shadow)(?=$|[^a-z])", re.IGNORECASE)
_RAW = re.compile(r"(^|[^a-z])(raw|live|online)(?=$|[^a-z])", re.IGNORECASE)


def _bare(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", _RAW.sub("", _MARK.sub("", name)).lower())


def averaged_and_raw(run: Run, ends: Mapping[ClockName, float]) -> list[tuple[Curve, Curve]]:
    """Pairs of curves whose names differ only by the mark of an average, on the same evaluations."""
    plain = {_bare(s.raw): s for s in run.series.values() if not _MARK.search(s.raw)}
    out = []
    for s in run.series.values():
        other = plain.get(_bare(s.raw))
        if not _MARK.search(s.raw) or other is None or s.better not in ("up", "down") or s.split == "train":
            continue
        averaged, raw = curve_of(s, dict(ends)), curve_of(other, dict(ends))
        if averaged is not None and raw is not None:
            out.append((averaged, raw))
    return out
