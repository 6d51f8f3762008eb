"""Kill -9 of the driver at random moments: resumed to the same verdict, no arm lost, none counted twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trial_toy import toy_run

from wheeltapper.trial.ledger import books_of, read_ledger

COMMAND = f"{sys.executable} -I -S train.py --config {{config}} --out {{out}}"


def drive(folder: Path, trial: Path, *, fresh: bool) -> subprocess.Popen[bytes]:
    begin = [str(folder), "--cmd", COMMAND, "--cause", "lr-too-high", "-o", str(trial), "--yes", "--gpus", "0"]
    args = begin if fresh else ["resume", str(trial)]
    return subprocess.Popen(
        [sys.executable, "-m", "wheeltapper.cli.main", "trial", *args],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder.parent,
        env={**os.environ, "TOY_PAUSE": "0.0005"},
    )  # fmt: skip


@pytest.mark.slow
def test_killed_at_random_and_resumed(tmp_path: Path) -> None:
    rng = random.Random(5)
    folder, trial = toy_run(tmp_path / "exp1"), tmp_path / "trial"
    ledger = trial / "ledger.jsonl"
    kills = 0
    for _ in range(12):
        size = ledger.stat().st_size if ledger.exists() else 0
        process = drive(folder, trial, fresh=not ledger.exists())
        until = time.monotonic() + 20
        while (not ledger.exists() or ledger.stat().st_size == size) and process.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.005)
        try:
            process.wait(timeout=rng.uniform(0.1, 0.8) if kills < 3 else 60)
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    records = list(read_ledger(ledger))
    assert kills
    assert any(r.get("recovered") or r.get("why") == "the driver was gone" for r in records), "no kill met a run"
    books = books_of(records)
    assert books.closed is not None
    assert books.verdicts["lr-too-high"].answer == "confirmed"
    counted = [r["job"] for r in records if r["kind"] == "ended" and r.get("outcome")]
    assert len(counted) == len(set(counted))
    sent = {r["job"]: (r["arm"], r["seed"]) for r in records if r["kind"] == "submitted"}
    repeats = [sent[job] for job in counted]
    assert len(repeats) == len(set(repeats)), "a repeat was counted twice"
    assert set(sent) == {r["job"] for r in records if r["kind"] in ("ended", "lost")}, "an attempt was lost"
