"""CSV and JSON lines, 1M rows of 7 numbers, against polars: `python benchmarks/rows.py [rows] [repeats]`.

Each route runs in a process of its own, alternating, so that ratios hold on a busy machine. polars is only
needed for the comparison; without it the ratio is left out. Variants show what damage and words cost.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

NAMES = ["step", "loss", "lr", "grad_norm", "acc", "time", "tokens"]
GOALS = {"csv": 6.0, "jsonl": 2.5}  # times polars, issue 2

OURS = """
import resource, sys, time
from pathlib import Path
from wheeltapper.reading import generic_csv, generic_jsonl
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
cpu, wall = time.process_time(), time.perf_counter()
(reading,) = (generic_csv if sys.argv[1].endswith("csv") else generic_jsonl).read(Path(sys.argv[1]))
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
arrays = {id(a): a.nbytes for p in reading.points for a in (p.values, p.at, p.lines, *p.clocks.values())}
peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
print(cpu, wall, peak / sum(arrays.values()), max(len(p.values) for p in reading.points))
"""
POLARS = """
import sys, time
import polars
cpu, wall = time.process_time(), time.perf_counter()
table = (polars.read_csv if sys.argv[1].endswith("csv") else polars.read_ndjson)(sys.argv[1])
print(time.process_time() - cpu, time.perf_counter() - wall, 0, table.height)
"""


def write(folder: Path, rows: int) -> dict[str, Path]:
    """Clean files, and the same with NaN and holes, with a column of words, with a damaged line now and then."""
    noise = np.random.default_rng(0).normal(size=(rows, 5))
    files = {name: folder / name for name in ("clean.csv", "holes.csv", "words.csv", "clean.jsonl", "damaged.jsonl")}
    out = {name: path.open("w") for name, path in files.items()}
    for name in ("clean.csv", "holes.csv", "words.csv"):
        out[name].write(",".join(["model"] * (name == "words.csv") + NAMES) + "\n")
    for i in range(rows):
        a = [float(f"{x:.7g}") for x in noise[i]]
        row = [i, 2 + a[0], 1e-4 * a[1], abs(a[2]), a[3], 0.1 + 0.01 * a[4], 1024 * i]
        text = [repr(x) for x in row]
        out["clean.csv"].write(",".join(text) + "\n")
        out["words.csv"].write("resnet," + ",".join(text) + "\n")
        holes = ["nan" if i % 7 == 0 else text[1], "" if i % 3 else text[2]]
        out["holes.csv"].write(",".join([text[0], *holes, *text[3:]]) + "\n")
        line = json.dumps(dict(zip(NAMES, row, strict=True)))
        out["clean.jsonl"].write(line + "\n")
        if i % 7 == 0:
            line = line.replace('"loss": ', '"loss": NaN, "was": ')
        out["damaged.jsonl"].write(line[: 30 if i % 50_000 == 1 else None] + "\n")
    for file in out.values():
        file.close()
    return files


def measure(code: str, file: Path) -> list[float] | None:
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1] / "src")}
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, env=env, check=False)
    return [float(x) for x in done.stdout.split()] if done.returncode == 0 else None


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        files = write(Path(folder), rows)
        print("| file | MB | CPU s | wall s | MB/s of CPU | peak / arrays kept | times polars (CPU) | goal |")
        print("| --- | --- | --- | --- | --- | --- | --- | --- |")
        for name, file in files.items():
            ours, theirs = [], []
            for _ in range(repeats):  # alternating: a busy machine is busy for both
                ours.append(measure(OURS, file))
                if name.startswith("clean"):
                    theirs.append(measure(POLARS, file))
            told = [run for run in ours if run]
            other = [run for run in theirs if run]
            cpu = statistics.median(run[0] for run in told)
            size = file.stat().st_size / 1e6
            ratio = cpu / statistics.median(run[0] for run in other) if other else None
            goal = GOALS[file.suffix[1:]] if name.startswith("clean") else None
            missed += bool(ratio and goal and ratio > goal)
            print(
                f"| {name} | {size:.0f} | {cpu:.2f} | {min(run[1] for run in told):.2f} | {size / cpu:.0f} "
                f"| {max(run[2] for run in told):.1f} | {f'{ratio:.1f}' if ratio else '-'} | {goal or '-'} |"
            )
            assert all(run[3] == rows for run in other), name
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
