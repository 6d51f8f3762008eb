"""The case studies, re-created small: each declared defect is found at its place, and none in the corrected twin."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest

from wheeltapper.finding import Finding
from wheeltapper.program.checks import run_checks
from wheeltapper.program.reading import read_code
from wheeltapper.settings.parse import parse_file

CASES = Path(__file__).resolve().parents[1] / "records" / "cases"

EXPECTED = {
    "000": {
        "accumulation-not-implemented": 1,
        "objective-preconditioner-mismatch": 1,
        "option-never-used": 5,
        "prints-effective-batch-that-is-not": 1,
    },
    "003": {
        "best-checkpoint-by-shifting-metric": 1,
        "config-key-never-read": 1,
        "resume-incomplete": 2,
        "scheduler-wrong-unit": 1,
    },
    "004": {
        "ema-horizon-too-long": 1,
        "onecycle-overrides-momentum": 1,
        "onecycle-overrun": 1,
        "option-never-used": 1,
        "per-rank-sampler-seed": 1,
        "resize-not-applied": 1,
        "scheduler-stepped-in-init": 1,
        "workers-per-process": 1,
    },
}


def findings(folder: Path) -> list[Finding]:
    configs = tuple(tree for p in sorted(folder.glob("*.yaml")) if (tree := parse_file(p)) is not None)
    before = os.getcwd()
    try:
        os.chdir(folder)
        codes, notes = read_code([Path()], configs)
    finally:
        os.chdir(before)
    assert not notes
    return [f for code in codes for f in run_checks(code) if f.grade != "expected"]  # what is normal is no defect


@pytest.mark.parametrize("case", EXPECTED)
def test_exactly_the_defects_of_a_case_are_found(case: str) -> None:
    assert Counter(f.id for f in findings(CASES / case / "as_run")) == EXPECTED[case]


@pytest.mark.parametrize("case", EXPECTED)
def test_the_corrected_twin_is_silent(case: str) -> None:
    assert [f.summary for f in findings(CASES / case / "twin")] == []


def test_case_000_names_the_five_options_and_the_true_batch() -> None:
    found = findings(CASES / "000" / "as_run")
    dead = {f.summary.split()[0].lstrip("-") for f in found if f.id == "option-never-used"}
    assert dead == {
        "gradient_accumulation_steps",
        "lr_scheduler",
        "warmup_steps",
        "gradient_clip_norm",
        "resume_checkpoint",
    }
    batch = next(f for f in found if f.id == "accumulation-not-implemented")
    assert batch.numbers == {"declared_batch": 64, "true_batch": 4, "accumulation": 16}
    assert batch.grade == "is"
    # The launch script hides the command in a tmux string; the place is still the line the value is written on.
    lines = (CASES / "000" / "as_run" / "run_prior.sh").read_text().splitlines()
    place = next(p for p in batch.places if p.file == "run_prior.sh")
    assert place.line is not None
    assert lines[place.line - 1].startswith('GRAD_ACCUM="16"')


def test_case_003_names_the_unit_and_the_section() -> None:
    found = findings(CASES / "003" / "as_run")
    unit = next(f for f in found if f.id == "scheduler-wrong-unit")
    assert unit.numbers == {"accumulation": 4}
    assert "every 4 micro-batches" in unit.summary
    section = next(f for f in found if f.id == "config-key-never-read")
    text = (CASES / "003" / "as_run" / "config_stable.yaml").read_text().splitlines()
    assert section.places[0].line is not None
    assert text[section.places[0].line - 1] == "lr_schedule:"


def test_case_004_has_its_numbers() -> None:
    found = {f.id: f for f in findings(CASES / "004" / "as_run")}
    assert found["ema-horizon-too-long"].numbers["horizon"] == pytest.approx(100_000)
    assert found["workers-per-process"].numbers == {"workers": 24, "processes": 8, "total": 192, "cpus": 96}
    assert found["onecycle-overrides-momentum"].numbers == {"low": 0.85, "high": 0.95}
    assert "one step too many" in found["onecycle-overrun"].summary
    assert found["ema-horizon-too-long"].grade == "suspected"  # the size of the data set is not in the code
