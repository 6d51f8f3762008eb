"""Plays records as if they were live and counts the alarms of `watch`: `python scripts/watch_replay.py [--looks N] FOLDER`.

The folder holds records and a MANIFEST.csv with the columns name and class (healthy..., trouble). A run is cut at N even
positions of its clock, and every cut is judged as a look. What matters: alarms on healthy runs, how many of them were
withdrawn, and after what share of the run sick ones are called ill.
"""

from __future__ import annotations

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import numpy as np

from wheeltapper.api import judge, read
from wheeltapper.errors import WheeltapperError
from wheeltapper.run.model import Run
from wheeltapper.watch import Ledger


def cut(run: Run, share: float) -> Run | None:
    """The run as it stood after a share of its positions."""
    clock = next((c for c in ("step", "epoch", "sample", "row") if any(s.on(c) is not None for s in run.series.values())), None)
    if clock is None:
        return None
    ends = [float(np.nanmax(t)) for s in run.series.values() if (t := s.on(clock)) is not None and np.isfinite(t).any()]
    starts = [float(np.nanmin(t)) for s in run.series.values() if (t := s.on(clock)) is not None and np.isfinite(t).any()]
    if not ends:
        return None
    end = min(starts) + share * (max(ends) - min(starts))
    series = {}
    for name, s in run.series.items():
        track = s.on(clock)
        kept = s.where(track <= end) if track is not None else s.head(round(share * len(s)))
        if len(kept):
            series[name] = kept
    events = tuple(e for e in run.events if share >= 1 or (e.clock == clock and e.at is not None and e.at <= end))
    checkpoints = run.checkpoints if share >= 1 else ()
    return replace(run, series=series, events=events, checkpoints=checkpoints, dead={}, segments=run.segments[:1] if share < 1 else run.segments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--looks", type=int, default=20)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    rows = list(csv.DictReader((args.folder / "MANIFEST.csv").open(encoding="utf-8")))
    looks = false = withdrawn = 0
    alarms: list[float] = []
    for row in rows:
        kind = row["class"]
        if not kind.startswith(("healthy", "trouble")) or args.only not in row["name"]:
            continue
        try:
            runs = read(args.folder / row["name"])
        except WheeltapperError:
            continue
        for run in runs:
            ledger = Ledger()
            for n in range(1, args.looks + 1):
                part = cut(run, n / args.looks)
                if part is None or not part.series:
                    continue
                told = judge(part, audit=(), live=n < args.looks)
                new = ledger.judge("run", told, 0.0, name=run.name, first=False)
                if kind.startswith("healthy"):
                    looks += 1
                    false += sum(i.kind == "alarm" for i in new)
                    withdrawn += sum(i.kind == "withdrawn" for i in new)
                for i in new:
                    print(f"{kind:22} {row['name'][:34]:34} {run.name[:24]:24} {100 * n / args.looks:4.0f} %  {i.kind} {i.id}: {i.text[:110]}", flush=True)
                    if i.kind == "alarm" and kind == "trouble":
                        alarms.append(n / args.looks)
    print(f"healthy: {looks} looks, {false} alarms, {withdrawn} withdrawn; sick: alarms at {np.round(sorted(alarms), 2).tolist()}")


if __name__ == "__main__":
    main()
