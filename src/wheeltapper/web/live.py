"""The fleet that a server shows: scanned in a thread, again and again, so that a page asks for what is known already."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.fleet.content import stamp_of
from wheeltapper.fleet.scan import Fleet, Member, scan
from wheeltapper.fleet.sweep import Sweep, sweep_of
from wheeltapper.fleet.units import units_of
from wheeltapper.judge.diagnose import LINES
from wheeltapper.judge.model import Diagnosis
from wheeltapper.report.text import clean

SHARE = 10.0  # a scan takes at most a tenth of the time
KEPT = 16  # diagnoses held for those who look


class LiveFleet:
    """The runs at some paths as they are now. `version` grows with every change."""

    def __init__(self, paths: Sequence[str], *, every: float = 5.0, index_file: Path | None = None) -> None:
        self.paths = [os.path.abspath(path) for path in paths]
        self.every = every
        self.fleet = Fleet(())
        self.version = 0
        self.changed: dict[str, int] = {}  # id -> the version in which it last changed
        self.problem = ""
        self.progress: tuple[int, int] = (0, 0)
        self.ready = threading.Event()
        self._index_file = index_file
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._members: dict[str, Member] = {}
        self._known: OrderedDict[str, tuple[str, Diagnosis]] = OrderedDict()
        self._lock = threading.Lock()
        self._sweep: tuple[int, Sweep] | None = None

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    @property
    def stopped(self) -> bool:
        return self._stop.is_set()

    def member(self, ident: str) -> Member | None:
        return self._members.get(ident)

    def look(self) -> None:
        """Scan once, and note what is new."""
        try:
            fleet = scan(self.paths, index_file=self._index_file, progress=self._told)
        except InputError as error:  # a folder that went away: what was known is still shown
            self.problem = error.what
            self.version += 1
            return
        except Exception as error:  # a server goes on
            self.problem = clean(f"the scan failed: {type(error).__name__}: {error}")
            self.version += 1
            return
        before = {m.id: m.row for m in self.fleet.members}
        after = {m.id: m.row for m in fleet.members}
        moved = [ident for ident, row in after.items() if before.get(ident) != row]
        gone = before.keys() - after.keys()
        healed, self.problem = bool(self.problem), ""
        self.fleet, self._members = fleet, {m.id: m for m in fleet.members}
        if moved or gone or healed or not self.ready.is_set():
            self.version += 1
            self.changed.update(dict.fromkeys(moved, self.version))

    def diagnosis(self, member: Member) -> Diagnosis:
        """The whole diagnosis of a run, made again when its files have changed. Raises InputError, OSError."""
        stamp = stamp_of(member.unit)
        with self._lock:
            held = self._known.get(member.id)
            if held is not None and held[0] == stamp:
                self._known.move_to_end(member.id)
                return held[1]
        found = _diagnose(member)
        with self._lock:
            self._known[member.id] = (stamp, found)
            while len(self._known) > KEPT:
                self._known.popitem(last=False)
        return found

    def sweep(self) -> Sweep:
        held = self._sweep
        if held is None or held[0] != self.version:
            held = self._sweep = (self.version, sweep_of(self.fleet.members))
        return held[1]

    def _told(self, _path: str, done: int, total: int) -> None:
        self.progress = (done, total)

    def _go_on(self) -> None:
        while not self._stop.is_set():
            began, first = time.monotonic(), not self.ready.is_set()  # the first look reads all that is not known
            self.look()
            self.ready.set()
            cost = 0.0 if first else time.monotonic() - began
            self._stop.wait(max(self.every, SHARE * cost))


def _diagnose(member: Member) -> Diagnosis:
    """The unit is cut anew, for a run that goes on may have new files."""
    unit = member.unit
    if unit.top is None:
        runs = api.read(str(unit.path))
    else:
        again = next((u for u in units_of(unit.path) if u.path == unit.path), unit)
        runs = api.read(str(unit.path), files=[*again.files, *unit.shared], within=unit.top)
    at_path = [run for run in runs if os.path.normpath(os.path.abspath(run.root)) == member.path]
    if member.number >= len(at_path):
        raise InputError(f"{member.label} is no longer at {member.path}.", do="The table shows what is there now.")
    return api.judge(at_path[member.number], lines=LINES)
