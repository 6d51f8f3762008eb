"""How fast the machine ran and how much memory it held, where the log tells it per step."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.run.model import Run, Series
from wheeltapper.study import Absent, derived

# Names of a time that belongs to one step or one log interval; others run on or belong to an epoch.
_PER_STEP = re.compile(
    r"^(train[/_])?(time|batch_time|step_time|iter_time|time_ms|dt|elapsed[ _]time[ _]per[ _]iteration.*|time_per_iteration)$",
    re.IGNORECASE,
)
FEWEST = 40  # rows: enough for a level before and after


@derived
def pace(run: Run) -> Series:
    """Time per step or throughput of training, whichever has more rows."""
    found = [
        s
        for s in run.series.values()
        if int(s.finite.sum()) >= FEWEST
        and s.split in (None, "train")
        and s.window in (None, "batch", "window")
        and s.clock in ("step", "micro_step", "epoch", "sample")
        and (s.quantity == "throughput" or (s.quantity == "duration" and _PER_STEP.match(s.raw.strip())))
        and float(np.nanmin(s.values)) > 0
    ]
    if not found:
        raise Absent("neither step time nor throughput is logged", ("time per step",))
    return max(found, key=lambda s: (len(s), s.quantity == "throughput"))


@derived
def memory(run: Run) -> tuple[Series, ...]:
    """Every series of memory in use."""
    found = tuple(
        s
        for s in run.series.values()
        if s.quantity == "memory" and int(s.finite.sum()) >= FEWEST and np.nanmin(s.values) > 0
    )
    if not found:
        raise Absent("memory is not logged", ("memory in use",))
    return found
