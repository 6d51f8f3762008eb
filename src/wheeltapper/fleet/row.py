"""One run of a fleet in one row: what a table shows, sorts, filters and groups by. The whole diagnosis is made again when
somebody opens the run."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np

from wheeltapper.judge.compare import NOISE, knobs_of
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.report.text import clean
from wheeltapper.report.view import verdict_words
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import KNOBS
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.study import Study

MOST_SETTINGS = 120
MOST_TEXT = 80
MOST_TAGS = 12
TAGS = re.compile(r"(^|[._])tags?([.\[]\d+\]?)?$", re.IGNORECASE)
UNTOLD = re.compile(rf"{NOISE.pattern}|[.\[]\d+\]?$", re.IGNORECASE)  # names and folders; items of a list

Setting = str | float | int | bool


class Row(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of one run. `place` is where it lies, from the folder of its unit."""

    name: str
    place: str
    verdict: str
    words: str
    p_ill: float
    headline: str
    trouble: str = ""
    cause: str = ""
    cause_title: str = ""
    cause_share: float = 0.0
    score_name: str = ""
    score: float | None = None
    better: str = ""
    state: str = ""
    at: float | None = None
    total: float | None = None
    clock: str = ""
    lr: float | None = None
    seconds: float | None = None
    framework: str = ""
    points: int = 0
    changed: float = 0.0  # when the newest of its files was written
    tags: tuple[str, ...] = ()
    settings: dict[str, Setting] = {}

    @property
    def progress(self) -> float | None:
        """The share of the planned length that is done."""
        return None if self.at is None or not self.total else min(1.0, self.at / self.total)


def row_of(diagnosis: Diagnosis, folder: str) -> Row:
    """The row of a run that lies in `folder` or below it."""
    run, study = diagnosis.run, diagnosis.study or Study(diagnosis.run)
    score = _score(diagnosis, study)
    cause = next((c for c in diagnosis.causes if c.id != SOMETHING_ELSE), None)
    told = diagnosis.verdict != "sound" and cause is not None
    settings = settings_of(run)
    return Row(
        name=clean(run.name, 120),
        place=os.path.relpath(run.root, folder),
        verdict=diagnosis.verdict,
        words=verdict_words(diagnosis),
        p_ill=round(diagnosis.p_ill, 4),
        headline=clean(diagnosis.headline, 300),
        trouble=diagnosis.trouble or "" if diagnosis.verdict != "sound" else "",
        cause=cause.id if told and cause else "",
        cause_title=clean(cause.title, 160) if told and cause else "",
        cause_share=round(cause.probability, 3) if told and cause else 0.0,
        **score,
        state=diagnosis.progress.state,
        at=_finite(diagnosis.progress.at),
        total=_finite(diagnosis.progress.total),
        clock=diagnosis.progress.clock or "",
        lr=_rate(study, settings),
        seconds=_seconds(run),
        framework=clean(", ".join(run.formats[:2]), MOST_TEXT),
        points=sum(len(series) for series in run.series.values()),
        changed=_changed(run),
        tags=_tags(run),
        settings=settings,
    )


def settings_of(run: Run) -> dict[str, Setting]:
    """What the run declares: settings by their meaning, then the keys that no meaning is known for."""
    knobs = knobs_of(run)
    out: dict[str, Setting] = {}
    known = set()
    for value in knobs.declared():
        plain = _plain(value.value)
        names = KNOBS[value.id].kind == "name"  # of an optimizer, a schedule: one thing, however it is spelled
        out[value.id] = plain.lower() if names and isinstance(plain, str) else plain
        if value.leaf is not None:
            known.add((value.leaf.dotted, value.leaf.line))
    for key, leaf_value in _other_keys(run.configs, known):
        if len(out) >= MOST_SETTINGS:
            break
        out.setdefault(key, leaf_value)
    return out


def _other_keys(configs: tuple[ConfigTree, ...], known: set[tuple[str, int]]) -> list[tuple[str, Setting]]:
    return [
        (clean(leaf.dotted, MOST_TEXT), _plain(leaf.value))
        for tree in configs
        for leaf in tree.leaves
        if (leaf.dotted, leaf.line) not in known and leaf.value is not None and not UNTOLD.search(leaf.dotted)
    ]


def _plain(value: Any) -> Setting:
    if isinstance(value, bool | int | str):
        return clean(value, MOST_TEXT) if isinstance(value, str) or abs(value) > 2**53 else value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return clean(value, MOST_TEXT)


def _score(diagnosis: Diagnosis, study: Study) -> dict[str, Any]:
    best = diagnosis.best
    if best is not None and not best.nothing and math.isfinite(best.value):
        series = diagnosis.run.series.get(best.metric)
        return _score_words(best.metric, best.value, series.better if series else "")
    found: Series | None = next((s for name in ("main_metric", "val_loss", "train_loss") if (s := study.maybe(name))), None)
    if found is None or not found.finite.any():
        return {}
    good = found.values[found.finite]
    value = good.max() if found.better == "up" else good.min()
    return _score_words(found.name, float(value), found.better)


def _score_words(name: str, value: float, better: str) -> dict[str, Any]:
    return {"score_name": clean(name, 60), "score": value, "better": better}


def _rate(study: Study, settings: Mapping[str, Setting]) -> float | None:
    """The learning rate as it is set, else the highest that was logged."""
    told = settings.get("optimizer.lr")
    if isinstance(told, int | float) and not isinstance(told, bool):
        return float(told)
    logged: Series | None = study.maybe("lr")
    return float(logged.values[logged.finite].max()) if logged is not None and logged.finite.any() else None


def _seconds(run: Run) -> float | None:
    """How long the run took, by the clock that its record carries."""
    longest = 0.0
    for series in run.series.values():
        track = series.on("second")
        good = track[np.isfinite(track)] if track is not None else ()
        if len(good) > 1:
            longest = max(longest, float(max(good) - min(good)))
    return longest or None


def _changed(run: Run) -> float:
    newest = 0.0
    for file in run.files:
        try:
            newest = max(newest, os.stat(file).st_mtime)
        except OSError:
            continue
    return newest


def _tags(run: Run) -> tuple[str, ...]:
    """What the settings of the run name as its tags."""
    leaves = (leaf for tree in run.configs for leaf in tree.leaves)
    found = [leaf.value for leaf in leaves if TAGS.search(leaf.dotted) and isinstance(leaf.value, str)]
    return tuple(clean(tag, 40) for tag in dict.fromkeys(found) if tag.strip())[:MOST_TAGS]


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else float(value)
