"""What makes a loss incomparable with itself over time: curricula, growing resolution, ramped weights."""

from __future__ import annotations

import re

import numpy as np

from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study import derived

_WORDS = re.compile(
    r"curriculum|difficulty|kl_weight|kl_anneal|beta_anneal|^(train[/_.])?(kl_?)?beta(_?kl)?$|kl_coef|progressive|image_size|seq_len|seqlen", re.IGNORECASE
)
MOSAIC = 10  # epochs, ultralytics' default
JUMP = 8.0  # usual moves from epoch to epoch: a part of the loss that noise does not move


@derived
def shifting(run: Run, knobs: Knobs | None = None) -> str:
    """Why the loss is not comparable over time, in words; empty if nothing says so (NORM-01, NORM-08)."""
    if knobs is not None and knobs.value("curriculum.enabled"):
        return "a curriculum is on: the loss rises with the difficulty"
    if knobs is not None and knobs.value("augment.progressive"):
        return "the pictures grow during the run"
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


_MIXES = ("augment.mixup", "augment.cutmix", "augment.mixup_prob")


@derived
def mixing(knobs: Knobs | None = None) -> str:
    """What makes the training samples harder than the held-out ones by mixing them; empty if nothing says so."""
    for knob in _MIXES if knobs is not None else ():
        value = knobs.value(knob) if knobs is not None else None
        if isinstance(value, int | float) and value > 0:
            return f"training samples are mixed ({knob} is {value:g})"
    return ""
