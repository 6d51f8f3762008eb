"""What a guard inside the training has told is shown beside what the log says: each line once, an early warning as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from writers import Clock, Live

from wheeltapper.watch import Watcher
from wheeltapper.watch.incidents import Ledger


def line(kind: str, severity: str, step: Any, text: str = "words") -> str:
    return json.dumps({"event": "incident", "kind": kind, "severity": severity, "step": step, "text": text}) + "\n"


def watcher_of(live: Live, ledger: Ledger | None = None) -> Watcher:
    return Watcher([live.folder], clock=Clock(), ledger=ledger)


def test_each_line_once_also_over_calls(tmp_path: Path) -> None:
    live, ledger = Live(tmp_path), Ledger()
    live.grow(20)
    journal = Path(live.folder) / "guard.jsonl"
    journal.write_text(line("norm-outlier", "note", 3) + line("early", "early", 9, "Early warning: \x1b[31mred"))
    watcher = watcher_of(live, ledger)
    (first,) = [i for i in watcher.look() if i.kind in ("guard", "early")]
    assert (first.kind, first.id, first.at) == ("early", "early", 9)
    assert first.line.startswith("! ")
    assert "early at step 9: Early warning" in first.line
    assert "\x1b" not in first.line
    with journal.open("a") as file:
        file.write(line("nonfinite", "error", 14) + line("nonfinite", "error", 15)[:30])
    assert [(i.kind, i.at) for i in watcher.look() if i.kind in ("guard", "early")] == [("guard", 14)]
    again = watcher_of(live, Ledger.from_json(json.loads(json.dumps(ledger.to_json()))))
    assert [i for i in again.look() if i.kind in ("guard", "early")] == []


def test_what_is_no_journal_is_passed_over(tmp_path: Path) -> None:
    live = Live(tmp_path)
    live.grow(20)
    journal = Path(live.folder) / "guard.jsonl"
    journal.write_bytes(
        b"\xff\xfe{\n[1]\n" + b"[" * 5000 + b"\n" + line("early", "early", "nine").encode() + b'{"event": 3}\n'
    )
    assert [i for i in watcher_of(live).look() if i.kind in ("guard", "early")] == []
