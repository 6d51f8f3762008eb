"""A fleet of 10,000 runs: first scan, second scan, memory, sort and filter.

    python benchmarks/fleet.py [RUNS] [FOLDER]

Every run is a folder with a config and a log of its own (60 rows of training, 20 evaluations), in six shapes: sound, diverged,
overfitted, at chance, crashed, unfinished. No two hold the same content, so the first scan reads every one.
"""

from __future__ import annotations

import json
import math
import os
import random
import resource
import sys
import tempfile
import time
from pathlib import Path

from wheeltapper.fleet.scan import scan
from wheeltapper.fleet.table import grouped, matching, ordered

SHAPES = ("sound", "sound", "sound", "diverged", "overfitted", "chance", "unfinished")


def write_run(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    rate = 10 ** draw.uniform(-4, -1)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        f"optimizer: {draw.choice(['adamw', 'sgd'])}\nlr: {rate:.6g}\nbatch_size: {draw.choice([32, 64, 128])}\n"
        f"epochs: 20\nweight_decay: {draw.choice([0.0, 0.01, 0.1])}\ndropout: {draw.choice([0.0, 0.1])}\nseed: {seed}\n"
    )
    rows = []
    steps = 30 if shape == "unfinished" else 60
    for step in range(steps):
        loss = 0.4 + 1.9 * math.exp(-step / 12) + draw.gauss(0, 0.02)
        if shape == "diverged" and step > 35:
            loss = float("nan") if step > 45 else loss * 2 ** (step - 35)
        if shape == "chance":
            loss = 2.3 + draw.gauss(0, 0.01)
        rows.append({"step": 10 * (step + 1), "epoch": (step + 1) / 3, "train/loss": loss, "lr": rate * (1 - step / 60)})
        if step % 3 == 2:
            part = step / 60
            accuracy = 0.1 + 0.01 * draw.random() if shape == "chance" else 0.1 + 0.75 * (1 - math.exp(-4 * part))
            held = loss + 0.1 + (1.5 * part * part if shape == "overfitted" else 0)
            rows.append({"step": 10 * (step + 1), "epoch": (step + 1) / 3, "val/loss": held, "val/accuracy": accuracy})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def fleet_at(top: Path, runs: int) -> None:
    for number in range(runs):
        folder = top / f"group{number // 500:02d}" / f"run-{number:05d}"
        if not folder.exists():
            write_run(folder, number)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    with tempfile.TemporaryDirectory() as held:
        top = Path(sys.argv[2]) if len(sys.argv) > 2 else Path(held) / "runs"
        fleet_at(top, runs)
        index = Path(held) / "fleet.sqlite"
        before = os.times()
        first = scan([top], index_file=index)
        after = os.times()
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        cpu = sum(after[:4]) - sum(before[:4])
        second = scan([top], index_file=index)
        print(f"runs {len(first.members):,}, not judged {len(first.problems)}, load {os.getloadavg()[0]:.1f}")
        print(f"first scan   {first.seconds:7.1f} s wall, {cpu:.0f} s of CPU in all processes ({1000 * cpu / runs:.1f} ms a run)")
        print(f"second scan  {second.seconds:7.2f} s, {second.read} units read")
        print(f"memory       {own:.0f} MB in the parent, {child:.0f} MB in the largest worker")
        print(f"index        {sum(f.stat().st_size for f in index.parent.glob('fleet.sqlite*')) / 1e6:.1f} MB")
        for words, call in (
            ("sort by score", lambda: ordered(second.members, "-score")),
            ("filter p_ill>0.5", lambda: matching(second.members, ["p_ill>0.5"])),
            ("filter by words", lambda: matching(second.members, ["loss"])),
            ("group by optimizer", lambda: grouped(second.members, "optimizer.name")),
        ):
            began = time.perf_counter()
            call()
            print(f"{words:20s} {1000 * (time.perf_counter() - began):6.0f} ms")


if __name__ == "__main__":
    main()
