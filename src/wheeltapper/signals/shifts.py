"""What makes a loss incomparable with itself over time: curricula, growing resolution, ramped weights."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.config.knobs import Knobs
from wheeltapper.run.model import Run
from wheeltapper.signals import signal

_WORDS = re.compile(
    r"curriculum|difficulty|kl_weight|kl_anneal|beta_anneal|progressive|image_size|seq_len|seqlen", re.IGNORECASE
)
MOSAIC = 10  # epochs, ultralytics' default
JUMP = 8.0  # usual moves from epoch to epoch: a part of the loss that noise does not move


@signal
def shifting(run: Run, knobs: Knobs | None = None) -> str:
    """Why the loss is not comparable over time, in words; empty if nothing says so (NORM-01, NORM-08)."""
    if knobs is not None and knobs.value("curriculum.enabled"):
        return "a curriculum is on: the loss rises with the difficulty"
    stages = [e for e in run.events if e.kind == "stage"]
    if stages:
        return f"the log announces a change: {stages[0].text.strip()[:80]}"
    for series in run.series.values():
        if _WORDS.search(series.raw) and len(series) > 3:
            finite = series.values[series.finite]
            if len(finite) and float(np.ptp(finite)) > 0:
                return f"{series.name} changes during the run"
    return _mosaic_closed(run)


def _mosaic_closed(run: Run) -> str:
    """Ultralytics puts no more mosaics together in the last ten epochs (close_mosaic): other pictures, another loss at
    once. It is told where the parts of the loss jump up right there: where they fall, nothing is hidden by it."""
    told = [leaf.value for tree in run.configs if (leaf := tree.leaf("close_mosaic")) is not None]
    last = told[0] if told and isinstance(told[0], int) else MOSAIC
    if not (last > 0 and any("ultralytics" in name for name in run.formats)):
        return ""
    parts = [s.values for s in run.series.values() if s.quantity == "loss" and s.split == "train" and len(s) > 2 * last]
    moves = [np.diff(x) for x in parts if bool(np.isfinite(x).all())]
    jumped = [m for m in moves if m[-last] > JUMP * np.median(np.abs(m)) and m[-last] >= m[-last - 5 :].max()]
    if len(jumped) < 2 or 2 * len(jumped) < len(moves):
        return ""
    return f"no mosaics in the last {last} epochs (close_mosaic)"
