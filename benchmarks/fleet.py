"""A fleet of 10,000 runs: first scan, second scan, memory, sort and filter.

    python benchmarks/fleet.py [RUNS] [FOLDER]

Every run is a folder with a config and a log of its own (60 rows of training, 20 evaluations), in five shapes: sound, diverged,
overfitted, at chance, unfinished. No two hold the same content, so the first scan reads every one.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time
from pathlib import Path

from wheeltapper.fleet.scan import scan
from wheeltapper.fleet.table import grouped, matching, ordered

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from made_fleet import fleet_at


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
