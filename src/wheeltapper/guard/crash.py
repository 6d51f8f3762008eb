"""Write the recorder's last steps when the program dies: an exception that nobody catches, Ctrl-C, or SIGTERM.

Handlers are chained: whoever was there before is called afterwards, and a signal nobody else handled still ends the
program as it would have (the exit status is that of the signal). Nothing is installed on import; `close` puts back
what was there. Only study named in `study` are touched, so faulthandler keeps its own.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable
from types import FrameType, TracebackType
from typing import Any

from wheeltapper.guard.core import Stop
from wheeltapper.guard.record import Incident
from wheeltapper.guard.recorder import Recorder

log = logging.getLogger("wheeltapper.guard")

TOLD = (Exception, KeyboardInterrupt)  # a SystemExit is a program that ends as it means to


class CrashWriter:
    """Use as a context manager around the training, or call `install` and `close`."""

    def __init__(self, recorder: Recorder, *, study: Iterable[int] = (signal.SIGTERM,)) -> None:
        self.recorder = recorder
        self.study = tuple(study)
        self._before: dict[int, Any] = {}
        self._hook: Any = None
        self._mine: Any = None
        self._told: BaseException | None = None

    def install(self) -> CrashWriter:
        if self._mine is not None:
            return self
        self._hook, self._mine = sys.excepthook, self._uncaught
        sys.excepthook = self._mine
        if threading.current_thread() is threading.main_thread():  # Python allows handlers there only
            for number in self.study:
                before = signal.getsignal(number)
                if before is not None:  # None: set outside of Python, which cannot be chained
                    self._before[number] = before
                    signal.signal(number, self._signalled)
        return self

    def close(self) -> None:
        """Put back what was there, where nobody has replaced us since."""
        if self._mine is None:
            return
        if sys.excepthook is self._mine:
            sys.excepthook = self._hook
        self._mine = None
        if threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                if signal.getsignal(number) == self._signalled:
                    signal.signal(number, before)
        self._before = {}

    def __enter__(self) -> CrashWriter:
        return self.install()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TOLD) and not isinstance(error, Stop):
            self.tell(error)
        self.close()

    def tell(self, error: BaseException) -> None:
        """One folder for an exception, however often it passes by."""
        if error is self._told:
            return
        self._told = error
        last = traceback.extract_tb(error.__traceback__)[-8:]
        facts = {
            "exception": type(error).__name__,
            "message": str(error)[:2000],
            "frames": [f"{f.filename}:{f.lineno} in {f.name}" for f in last],
        }
        if isinstance(error, KeyboardInterrupt):
            self._write("interrupted", "The training was interrupted (KeyboardInterrupt).", facts, "note")
        else:
            self._write("crash", f"{type(error).__name__}: {str(error)[:300]}", facts)

    def _write(self, kind: str, text: str, facts: dict[str, Any], severity: str = "error") -> None:
        """Never raises, and never waits for a device that may hang: what has arrived is what is written."""
        try:
            guard = self.recorder.guard
            incident = Incident(kind, guard.at, guard.tick, time.time(), text, severity, facts=facts, rank=guard.rank)
            place = self.recorder.write(incident)
            if place is not None:
                log.log(
                    logging.ERROR if severity == "error" else logging.INFO, "%s; the last steps are in %s", text, place
                )
        except Exception:
            log.exception("the last steps could not be written")

    def _uncaught(self, kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        if self._mine is not None and issubclass(kind, TOLD):
            self.tell(error)
        (self._hook or sys.__excepthook__)(kind, error, trace)

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._mine is not None:
            name = signal.Signals(number).name
            self._write("signal", f"the program was told to end ({name})", {"signal": name})
        before = self._before.get(number, signal.SIG_DFL)
        if callable(before):
            before(number, frame)
        elif before == signal.SIG_DFL:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
