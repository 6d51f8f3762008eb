"""How fast a run goes: by the times it logged itself, else by how far it came between our looks."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Run

LOOKS = 60  # the pace of the last looks; older ones belong to another time


@dataclass(slots=True)
class Pace:
    """(our time, position) at each diagnosis."""

    track: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=LOOKS))

    def seen(self, now: float, at: float | None) -> None:
        if at is None:
            return
        if self.track and at < self.track[-1][1]:
            self.track.clear()  # it went back: a restart
        self.track.append((now, at))

    def rate(self, run: Run, clock: str | None) -> float | None:
        """Positions a second, over the last half of the record."""
        logged = [r for s in run.series.values() if (r := _logged(s.clocks.get("second"), s.on(clock)))]  # type: ignore[arg-type]
        if logged:
            return float(np.median(logged))
        if len(self.track) < 2:
            return None
        (t0, a0), (t1, a1) = self.track[0], self.track[-1]
        return (a1 - a0) / (t1 - t0) if t1 > t0 and a1 > a0 else None


def _logged(seconds: Floats | None, track: Floats | None) -> float | None:
    if seconds is None or track is None or len(track) < 4:
        return None
    half = len(track) // 2
    done, took = float(track[-1] - track[half]), float(seconds[-1] - seconds[half])
    return done / took if done > 0 and took > 0 and math.isfinite(done) and math.isfinite(took) else None
