"""Config, launch script and code joined: the table of the cases, their twins, and silence on healthy scripts."""

from __future__ import annotations

import gc
import json
from pathlib import Path

import pytest

from wheeltapper.audit import audit
from wheeltapper.report.json_out import check_object, dumps
from wheeltapper.report.sarif import sarif_object

RECORDS = Path(__file__).resolve().parents[1] / "records"
CASES = RECORDS / "cases"
HEALTHY = sorted(p for p in (RECORDS / "healthy").iterdir() if p.suffix == ".py" or p.is_dir())


def table(folder: Path) -> dict[str, tuple[str, str]]:
    return {row.label: (row.value, row.how) for row in audit([folder]).rows}


def test_case_000_declares_64_and_trains_4() -> None:
    rows = table(CASES / "000" / "as_run")
    assert rows["effective batch"][0] == "4"
    assert "declared 64" in rows["effective batch"][1]
    assert table(CASES / "000" / "twin")["effective batch"][0] == "64"


def test_case_004_tells_what_the_code_does() -> None:
    rows = table(CASES / "004" / "as_run")
    assert rows["effective batch"][0] == "2048"
    assert "divides it over the processes" in rows["effective batch"][1]
    assert rows["average of weights"] == ("decay 0.9999", "updated every 10 steps: a horizon of 100,000")
    assert rows["loader workers"] == ("24", "per process, 192 over 8 processes")
    assert rows["schedule in the code"] == ("OneCycleLR", "stepped at every batch")


@pytest.mark.parametrize("case", ["000", "003", "004"])
def test_a_corrected_twin_has_no_finding(case: str) -> None:
    assert [f"{f.id}: {f.summary}" for f in audit([CASES / case / "twin"]).findings if f.grade != "expected"] == []


@pytest.mark.parametrize("case", ["000", "003", "004"])
def test_findings_are_told_once_and_can_be_written(case: str) -> None:
    report = audit([CASES / case / "as_run"])
    spots = [(f.id, str(f.places[0])) for f in report.findings]
    assert len(spots) == len(set(spots))
    assert json.loads(dumps(check_object(report)))
    rules = {r["id"] for r in sarif_object(report.findings)["runs"][0]["tool"]["driver"]["rules"]}
    assert rules == {f.id for f in report.findings}


@pytest.mark.parametrize("path", HEALTHY, ids=lambda p: p.name)
def test_nothing_certain_is_claimed_of_a_healthy_script(path: Path) -> None:
    assert [f"{f.id}: {f.summary}" for f in audit([path]).findings if f.grade == "is"] == []


def test_several_configs_that_differ_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("lr: 0.1\nbatch_size: 256\n")
    (tmp_path / "b.yaml").write_text("lr: 0.001\nbatch_size: 256\n")
    (note,) = [n for n in audit([tmp_path]).notes if "configurations lie here" in n]
    assert "(b.yaml last): a.yaml has lr 0.1." in note
    (tmp_path / "a.yaml").write_text("lr: 0.001\nseed: 3\n")
    assert not any("configurations lie here" in n for n in audit([tmp_path]).notes)


def test_a_json_list_is_data_and_the_collector_is_left_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "labels.json").write_text("[1, 2, 3]")
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    assert gc.isenabled()
    audit([tmp_path])
    assert gc.isenabled()
    gc.disable()
    try:
        audit([tmp_path])
        assert not gc.isenabled()
    finally:
        gc.enable()
