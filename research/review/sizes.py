"""Sizes of the server's answers and of brief JSON over many runs: python research/review/sizes.py FOLDER [N]."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from wheeltapper.errors import WheeltapperError
from wheeltapper.mcp import desk_settings
from wheeltapper.mcp.desk import Desk
from wheeltapper.mcp.roots import Roots
from wheeltapper.report.brief import brief, size_of

TEXT = "Validation loss rises after step 100. The learning rate is too high. The batch size is 64. It overfits.\n" * 20


def main() -> None:
    folder, most = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 100
    desk = Desk(Roots.of([str(folder)]))
    sizes: dict[str, list[int]] = defaultdict(list)
    seconds: dict[str, list[float]] = defaultdict(list)
    runs = sorted(path.name for path in folder.iterdir() if path.is_dir())[:most]

    def note(name: str, call: Callable[..., dict[str, Any]], *given: Any, **named: Any) -> None:
        began = perf_counter()
        try:
            sizes[name].append(size_of(call(*given, **named)))
        except WheeltapperError as error:
            sizes[f"{name}: {type(error).__name__}"].append(0)
        seconds[name].append(perf_counter() - began)

    for index, run in enumerate(runs):
        try:
            d = desk.known(run).diagnosis
        except WheeltapperError as error:
            print(run, str(error).splitlines()[0])
            continue
        sizes["diagnose --brief --json, a run"].append(size_of(brief(d)))
        note("show", desk.show, run)
        note("diagnose", desk.diagnose, run)
        for cause in d.causes[:2]:
            if cause.id != "something-else":
                note("evidence", desk.evidence, run, cause.id)
        for series in list(d.run.series)[:2]:
            note("curve", desk.curve, run, series, points=120)
        note("settings", desk_settings.settings, desk, run)
        note("schedule", desk_settings.schedule, desk, run)
        note("check", desk_settings.check, desk, [run])
        note("fix", desk_settings.fix, desk, run)
        note("simulate", desk_settings.simulate, desk, run, {"optimizer.lr": 1e-4})
        note("review", desk_settings.review, desk, run, text=TEXT)
        if index:
            note("compare", desk_settings.compare, desk, runs[index - 1], run)
    note("list_runs", desk.list_runs, limit=100)
    print(f"{len(runs)} runs")
    print(
        "| answer | n | median bytes | largest | tokens of the largest, at 3 bytes | median seconds |\n| --- | --- | --- | --- | --- | --- |"
    )
    for name, values in sorted(sizes.items()):
        took = f"{np.median(seconds[name]):.2f}" if name in seconds else ""
        print(f"| {name} | {len(values)} | {np.median(values):.0f} | {max(values)} | {max(values) / 3:.0f} | {took} |")


if __name__ == "__main__":
    main()
