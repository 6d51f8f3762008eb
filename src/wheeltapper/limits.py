"""What one piece of work may cost, and the one guard around every reader, parser and check.

Every file a run left is untrusted. `guarded(call)` turns whatever goes wrong in it into a `Failure` that says what and
where, so that one file never costs another. Work inside it has a budget of CPU time: loops that a small file can make
long call `spend`, which reads the clock; in the main thread a timer ends what does not (a regular expression, a call
into C that looks at signals). CPU time, not wall time: a busy machine changes no answer.

>>> guarded(lambda: 1 / 0).text
'ZeroDivisionError: division by zero'
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TypeVar

from wheeltapper.errors import ContractError

T = TypeVar("T")

SECONDS = 4.0  # CPU time for a small file: a thousand times what one takes
SECONDS_PER_MB = 1.0  # the slowest reader takes a tenth of it
MOST_SECONDS = 600.0
_LOOK = 20_000  # units of work between two looks at the clock: less than a millisecond's cost, well under a second's work


class OverBudgetError(Exception):
    """Work that took more than it may. Caught by `guarded`; parsers that can keep what they have catch it themselves."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong in a guarded call."""

    text: str
    where: str  # the place in our own source
    over_budget: bool = False


class _Active(threading.local):
    deadline = float("inf")  # on the thread's CPU clock
    seconds = 0.0
    since_look = 0


_active = _Active()


def seconds_for(size: int) -> float:
    """CPU time for reading a file of so many bytes."""
    return min(MOST_SECONDS, SECONDS + SECONDS_PER_MB * size / 1e6)


def spend(work: int = 1) -> None:
    """Count work; raises OverBudgetError when the guarded call around it has had its time."""
    _active.since_look += work
    if _active.since_look >= _LOOK:
        _active.since_look = 0
        check_clock()


def check_clock() -> None:
    if time.thread_time() > _active.deadline:
        raise OverBudgetError(f"it took more than {_active.seconds:.0f} s to read; it was stopped")


def guarded(call: Callable[[], T], *, seconds: float = SECONDS) -> T | Failure:
    """What the call gives, or why it gives nothing. Never raises, but for a unit of ours that breaks its contract."""
    try:
        with within(seconds):
            return call()
    except ContractError:
        raise
    except OverBudgetError as error:
        return Failure(str(error), _place(error), over_budget=True)
    except MemoryError as error:
        return Failure("it takes more memory than there is", _place(error), over_budget=True)
    except RecursionError as error:
        return Failure("it is nested too deeply", _place(error))
    except Exception as error:
        return Failure(f"{type(error).__name__}: {str(error)[:200]}", _place(error))


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """At most so much CPU time inside; an outer limit that ends sooner still holds."""
    before = (_active.deadline, _active.seconds)
    mine = time.thread_time() + seconds
    if mine < before[0]:
        _active.deadline, _active.seconds = mine, seconds
    timer = _start_timer()
    try:
        try:
            yield
        finally:
            _active.deadline, _active.seconds = before
    finally:  # twice, as the timer may ring just before the first time
        _active.deadline, _active.seconds = before
        if timer:
            _start_timer()


def _start_timer() -> bool:
    """Ring when the deadline has passed. Only the main thread gets signals, and a handler of somebody else stays."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "SIGPROF"):
        return False
    handler = signal.getsignal(signal.SIGPROF)
    if handler is not _ring:
        if handler is not signal.SIG_DFL:
            return False
        signal.signal(signal.SIGPROF, _ring)
    left = _active.deadline - time.thread_time()
    # Again every second: somebody may have caught the first.
    signal.setitimer(signal.ITIMER_PROF, 0.0 if left == float("inf") else max(left, 0.001), 1.0)
    return True


def _ring(_number: int, _frame: FrameType | None) -> None:
    # Other threads share the timer, so it may ring early; then it rings again.
    check_clock()


def _place(error: BaseException) -> str:
    """The last line of our own source that the error passed."""
    here = Path(__file__).parent
    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if here in Path(f.filename).parents] or list(frames)
    last = next((f for f in reversed(ours) if Path(f.filename).name != "limits.py"), ours[-1])
    name = Path(last.filename)
    return f"{name.relative_to(here) if here in name.parents else name.name}:{last.lineno}"


def is_plain_file(path: Path) -> bool:
    """Neither folder nor pipe, socket or device: opening those may wait for ever or do something."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
