"""Kill -9 of the driver of a trial at random moments, many times; 1,000 tiny arms; the overhead of scheduling.

    python scripts/trial_kills.py kills 50
    python scripts/trial_kills.py arms 1000
    python scripts/trial_kills.py overhead 24 4.0

Prints figures for LOG.md. Uses the toy training of tests/trial.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "trial"))

from trial_toy import toy_run

from wheeltapper.trial.engines import Job
from wheeltapper.trial.engines.local import LocalEngine
from wheeltapper.trial.ledger import books_of, read_ledger

COMMAND = f"{sys.executable} -I -S train.py --config {{config}} --out {{out}}"


def drive(folder: Path, trial: Path, *, fresh: bool) -> subprocess.Popen[bytes]:
    begin = [str(folder), "--cmd", COMMAND, "--cause", "lr-too-high", "-o", str(trial), "--yes", "--gpus", "0"]
    begin += ["--set", "weight-decay-too-strong:optimizer.weight_decay=0.0001"]
    args = begin if fresh else ["resume", str(trial)]
    return subprocess.Popen(
        [sys.executable, "-m", "wheeltapper.cli.main", "trial", *args],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder.parent,
        env={**os.environ, "TOY_PAUSE": "0.002"},
    )  # fmt: skip


def problems_of(trial: Path) -> list[str]:
    """What is wrong with a finished ledger; nothing, if all is well."""
    records = list(read_ledger(trial / "ledger.jsonl"))
    books = books_of(records)
    out = []
    answers = {arm: verdict.answer for arm, verdict in books.verdicts.items()}
    if answers != {"lr-too-high": "confirmed", "weight-decay-too-strong": "refuted"}:
        out.append(f"verdicts {answers}")
    sent = {r["job"]: (r["arm"], r["seed"]) for r in records if r["kind"] == "submitted"}
    counted = [sent[r["job"]] for r in records if r["kind"] == "ended" and r.get("outcome")]
    out += [f"{key} counted twice" for key in set(counted) if counted.count(key) > 1]
    ends = {r["job"] for r in records if r["kind"] in ("ended", "lost")}
    out += [f"{job} lost without a word" for job in set(sent) - ends]
    return out


def kills(many: int) -> None:
    """One trial after another; each is killed at random moments until it ends by itself."""
    rng = random.Random(1)
    done = trials = recovered = again = 0
    wrong: list[str] = []
    began = time.monotonic()
    while done < many:
        with tempfile.TemporaryDirectory() as place:
            folder, trial = toy_run(Path(place) / "exp1"), Path(place) / "trial"
            while True:
                ledger = trial / "ledger.jsonl"
                size = ledger.stat().st_size if ledger.exists() else 0
                process = drive(folder, trial, fresh=not ledger.exists())
                # Counted from the first line that this driver writes: also in the middle of its recovering.
                while (not ledger.exists() or ledger.stat().st_size == size) and process.poll() is None:
                    time.sleep(0.002)
                wait = rng.choice([rng.uniform(0, 0.5), rng.uniform(0.5, 9.0)]) if done < many else None
                try:
                    process.wait(timeout=wait)
                    break
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.wait()
                    done += 1
                    print(f"\r{done} kills", end="", file=sys.stderr)
            records = list(read_ledger(trial / "ledger.jsonl"))
            recovered += sum(bool(r.get("recovered")) for r in records)
            again += sum(r["kind"] == "lost" and r["why"] == "the driver was gone" for r in records)
            wrong += problems_of(trial)
            trials += 1
    left = [p for p in Path("/proc").iterdir() if p.name.isdigit() and b"TOY_PAUSE" in _environ(p)]
    print(
        f"\n{done} kills over {trials} trials in {time.monotonic() - began:.0f} s: {len(wrong)} problems {wrong[:5]}; "
        f"{recovered} runs ended while no driver was there and were counted, {again} were cut and run again; "
        f"{len(left)} processes left"
    )


def _environ(entry: Path) -> bytes:
    try:
        return (entry / "environ").read_bytes()
    except OSError:
        return b""


def arms(many: int) -> None:
    """Tiny jobs on the local engine: time for each, and what is left of them."""
    before = len(os.listdir("/proc/self/fd"))
    with tempfile.TemporaryDirectory() as place:
        engine = LocalEngine(gpus=())
        began = time.monotonic()
        for i in range(many):
            out = Path(place) / str(i)
            out.mkdir()
            engine.submit(Job(f"j{i}", "true", cwd=place, out=str(out)))
        ended = 0
        while ended < many:
            ended += sum(event.kind == "ended" and event.code == 0 for event in engine.poll(1.0))
        took = time.monotonic() - began
        engine.close()
        left = [p for p in Path("/proc").iterdir() if p.name.isdigit() and place.encode() in _environ(p)]
        files = sum(len(names) for _, _, names in os.walk(place))
    after = len(os.listdir("/proc/self/fd"))
    print(
        f"{many} arms in {took:.1f} s ({1000 * took / many:.1f} ms each); open files {before} -> {after}, "
        f"{len(left)} processes left, {files} files ({files / many:g} each)"
    )


def overhead(many: int, seconds: float) -> None:
    """A whole trial of sleeping arms: the slots' time that is not an arm's, over the arms' time."""
    from dataclasses import replace

    from wheeltapper import api
    from wheeltapper.trial.arms import Wish
    from wheeltapper.trial.driver import start_trial

    with tempfile.TemporaryDirectory() as place:
        folder = toy_run(Path(place) / "exp1")
        wish = Wish(sets=("schedule.warmup=21", "optimizer.weight_decay=0.00001"), repeats=many // 3)
        plan = api.plan_trial(folder, COMMAND, wish)
        # No look may decide: all of the planned runs are to be run.
        plan = replace(plan, rule=replace(plan.rule, alpha=1e-9, beta=1e-9))
        os.environ["TOY_PAUSE"] = str(seconds / 200)
        engine = LocalEngine(gpus=())
        slots = engine.room()
        began = time.monotonic()
        books = start_trial(plan, Path(place) / "trial", engine)
        wall = time.monotonic() - began
    runs = sum(map(len, books.outcomes.values()))
    # The last round cannot fill all slots; with r runs on s slots that idle share is not the scheduler's doing.
    rounds = -(-runs // slots)
    mean = books.seconds / runs
    print(
        f"{runs} runs of {mean:.2f} s on {slots} slots: {wall:.2f} s, {rounds} rounds would take {rounds * mean:.2f} s; "
        f"overhead {100 * (wall - rounds * mean) / (rounds * mean):.1f} % of arm time"
    )


if __name__ == "__main__":
    what = sys.argv[1]
    {"kills": kills, "arms": arms, "overhead": overhead}[what](
        *(float(a) if "." in a else int(a) for a in sys.argv[2:])
    )  # type: ignore[operator]
