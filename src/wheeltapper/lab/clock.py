"""The time a lab training writes into its logs, and the moment its machine is taken away.

A lab run lasts seconds, the run it stands for hours, and their log lines carry whole seconds. So the
log's clock is this process's CPU time, stretched: epoch times in the log are in true proportion, and a
busy machine beside us does not look like a slow data loader.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

EPOCH = datetime(2025, 10, 25, 20, 59, 50)


@dataclass(slots=True)
class _Clock:
    start: datetime | None = None  # None: real time, as when a script is started by hand or by torchrun
    speed: float = 1.0
    began: float = 0.0
    preempt_at: float | None = None


_clock = _Clock()


class Preempted(BaseException):
    """The machine was taken away; like a kill, it is no Exception that a training loop may catch."""


def start(day: int, speed: float, preempt_at: float | None = None) -> None:
    """Begin a launch `day` days after the lab's first day, log time running `speed` times CPU time."""
    _clock.start = EPOCH + timedelta(days=day, seconds=17 * day)
    _clock.speed = speed
    _clock.began = _reading()
    _clock.preempt_at = preempt_at


def stop() -> None:
    """Back to real time."""
    _clock.start = None
    _clock.preempt_at = None


def now() -> datetime:
    if _clock.start is None:
        return datetime.now()
    return _clock.start + timedelta(seconds=seconds())


def seconds() -> float:
    """A monotone reading of the same clock, for durations."""
    if _clock.start is None:
        return time.perf_counter()
    return (_reading() - _clock.began) * _clock.speed


def _reading() -> float:
    """CPU time, unless the log is to run at true speed: then the work is on a GPU, and CPU time says nothing."""
    return time.process_time() if _clock.speed != 1.0 else time.perf_counter()


def alive(position: float) -> None:
    """A training calls this once per epoch or step; raises where the launch is to be cut off."""
    if _clock.preempt_at is not None and position >= _clock.preempt_at:
        raise Preempted
