"""What the writers of trainings leave, as they leave it: one training is one run, its series have the right role, clock and values.

Each folder of records/writers holds `run/`, as a library or a script wrote it, and `expected.json`. Those called real_* were
written by the library itself on a tiny training; the others imitate the lines that it prints.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from wheeltapper.errors import NothingToRead
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run

RECORDS = Path(__file__).resolve().parents[1] / "records" / "writers"
NAMES = sorted(folder.name for folder in RECORDS.iterdir())
TEXTS = {".log", ".txt", ".out", ".err", ""}


def expected_of(name: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((RECORDS / name / "expected.json").read_text())
    return told


def differences(run: Run, series: dict[str, Any]) -> list[str]:
    wrong = []
    for label, want in series.items():
        found = run.series.get(label)
        if found is None:
            wrong.append(f"{label} is missing among {list(run.series)}")
            continue
        have = (len(found), float(found.values[0]), float(found.values[-1]))
        if have != pytest.approx((want["n"], want["first"], want["last"]), rel=1e-3, abs=1e-3):
            wrong.append(f"{label} has {have}, not {want}")
        if want["clock"] not in ("*", found.clock):
            wrong.append(f"{label} is counted by {found.clock}, not {want['clock']}")
        for at, place in (("first_at", float(found.at[0])), ("last_at", float(found.at[-1]))):
            if want[at] is not None and place != pytest.approx(want[at]):
                wrong.append(f"{label}: {at} is {place}, not {want[at]}")
    return wrong


@pytest.mark.parametrize("name", NAMES)
def test_one_training_is_one_run_and_read_right(name: str) -> None:
    want = expected_of(name)
    runs = read_runs(RECORDS / name / "run")
    assert len(runs) == want["runs"], [run.name for run in runs]
    assert runs[0].series
    assert differences(runs[0], want["series"]) == []
    if want["series"]:
        assert sum(not segment.beside for segment in runs[0].segments) == want["launches"]


@pytest.mark.parametrize("name", NAMES)
def test_train_and_val_are_not_swapped(name: str) -> None:
    series = expected_of(name)["series"]
    held = {label.replace("val/", "train/", 1): want for label, want in series.items() if label.startswith("val/")}
    both = {label: want for label, want in held.items() if label in series and want != series[label]}
    (run, *_) = read_runs(RECORDS / name / "run")
    for label, want in both.items():
        assert differences(run, {label: want}), f"{label} holds the values of the validation"


@pytest.mark.parametrize("name", NAMES)
def test_a_log_cut_in_the_middle_gives_its_first_half(name: str, tmp_path: Path) -> None:
    shutil.copytree(RECORDS / name / "run", tmp_path / "run")
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    for file in files:
        data = file.read_bytes()
        file.write_bytes(data[: max(len(data) // 2, 1)])
    try:
        runs = read_runs(tmp_path / "run")
    except NothingToRead:
        assert not any(file.suffix in TEXTS for file in files)  # a torn archive or document may give nothing
        return
    for label, want in expected_of(name)["series"].items():
        found = runs[0].series.get(label)
        if found is not None and want["n"] > 4 and len(found) > 2:
            assert float(found.values[0]) == pytest.approx(want["first"], rel=2e-3, abs=1e-3)
