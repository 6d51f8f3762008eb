"""Follows live runs from outside: looks at what they write, judges the growing record, says what is new.

    from wheeltapper.watch import Watcher
    watcher = Watcher(["runs/exp1"])
    for incident in watcher.look():
        print(incident.line)
"""

from __future__ import annotations

from wheeltapper.watch.incidents import Incident, Ledger
from wheeltapper.watch.watcher import Watched, Watcher

__all__ = ["Incident", "Ledger", "Watched", "Watcher"]
