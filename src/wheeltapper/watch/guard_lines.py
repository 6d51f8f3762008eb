"""What a guard inside the training has told: new lines of its journal, `guard.jsonl` in the run's folder.

The guard sees every step and every tensor, the log only some; so its incidents are shown beside what is read from the log.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wheeltapper.watch.incidents import Incident, Kind, Ledger

JOURNAL = "guard.jsonl"
MOST_BYTES = 1 << 20  # at a look; a journal has some hundred bytes for each incident
KINDS: dict[str, Kind] = {"early": "early", "warning": "guard", "error": "guard"}


class GuardLines:
    """Follows the journals of all watched folders; each line is read once."""

    def __init__(self) -> None:
        self._read: dict[Path, int] = {}  # bytes read so far

    def news(self, root: Path, key: str, name: str, ledger: Ledger, now: float) -> list[Incident]:
        """What the guard of the run in this folder has told since the last look. `ledger` knows what an earlier call of
        `watch --once` has passed on."""
        out: list[Incident] = []
        for line in self._lines((root if root.is_dir() else root.parent) / JOURNAL):
            kind = KINDS.get(str(line.get("severity")))
            step, text = line.get("step"), line.get("text")
            if (
                line.get("event") != "incident"
                or kind is None
                or not isinstance(step, int)
                or not isinstance(text, str)
            ):
                continue
            id = str(line.get("kind"))[:40]
            if ledger.new(key, f"guard {id} {step}"):
                out.append(Incident(name, kind, id, text, now, float(step), "step"))
        return out

    def _lines(self, path: Path) -> list[dict[str, Any]]:
        """Whole lines that are new. A file that has become shorter is another one."""
        try:
            size, at = path.stat().st_size, self._read.get(path, 0)
            if size == at:
                return []
            with path.open("rb") as file:
                file.seek(at if at <= size else 0)
                begin, data = file.tell(), file.read(MOST_BYTES)
        except OSError:
            return []
        end = data.rfind(b"\n") + 1
        self._read[path] = begin + (end or (len(data) if len(data) == MOST_BYTES else 0))
        found = []
        for line in data[:end].splitlines():
            try:
                value = json.loads(line)
            except (ValueError, RecursionError):
                continue  # cut short by a crash
            if isinstance(value, dict):
                found.append(value)
        return found
