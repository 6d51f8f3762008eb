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
    return ""
