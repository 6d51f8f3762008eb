"""A line on stderr for work that takes more than a second, and only where a person is watching."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import TextIO

from wheeltapper.report.text import clean

PATIENCE = 1.0  # seconds of silence before the line appears
BAR = 24


class Progress:
    """`with Progress("reading") as progress: work(progress)`; the work calls progress(name, done, total).

    A thread draws it, so work that reports nothing still shows that time passes.
    """

    def __init__(self, what: str, *, stream: TextIO | None = None, patience: float = PATIENCE) -> None:
        self.what = what
        self.stream = stream or sys.stderr
        self.patience = patience
        self.item = ""
        self.done = 0
        self.total = 0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._width = 0

    def __call__(self, item: str, done: int, total: int) -> None:
        self.item, self.done, self.total = item, done, total

    def __enter__(self) -> Progress:
        if self.stream.isatty():
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
            self._put("")

    def _draw(self) -> None:
        started = time.monotonic()
        while not self._stop.wait(self.patience if not self._width else 0.2):
            self._put(self.line(time.monotonic() - started))

    def line(self, seconds: float) -> str:
        """
        >>> p = Progress("reading"); p("runs/a/train.log", 3, 12); p.line(2.5)
        'reading [######                  ] 3 of 12, 2 s  train.log'
        >>> Progress("reading").line(1)
        'reading, 1 s'
        """
        name = clean(os.path.basename(self.item), 40)
        count = ""
        if self.total:
            filled = BAR * min(self.done, self.total) // self.total
            count = f" [{'#' * filled:<{BAR}}] {self.done:,} of {self.total:,}"
        return f"{self.what}{count}, {int(seconds)} s  {name}".rstrip()

    def _put(self, line: str) -> None:
        if not line and not self._width:
            return
        self.stream.write("\r" + line.ljust(self._width) + ("\r" if not line else ""))
        self.stream.flush()
        self._width = len(line)
