"""Healthy training scripts in public style: nothing is claimed about any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheeltapper.program.checks import run_checks
from wheeltapper.program.reading import read_code
from wheeltapper.settings.parse import parse_file

HEALTHY = Path(__file__).resolve().parents[1] / "records" / "healthy"
PROGRAMS = sorted(p for p in HEALTHY.iterdir() if p.suffix == ".py" or p.is_dir())


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 30


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.name)
def test_a_healthy_script_has_no_finding(path: Path) -> None:
    configs = (
        tuple(tree for p in sorted(path.rglob("*.yaml")) if (tree := parse_file(p)) is not None)
        if path.is_dir()
        else ()
    )
    codes, notes = read_code([path], configs)
    assert notes == ()
    if path.name == "functional_sgd.py":
        assert codes == []  # no backward pass and no optimizer: nothing of ours to read
        return
    assert len(codes) == 1, "read as one training program"
    assert codes[0].trains
    assert [f"{f.id}: {f.summary}" for f in run_checks(codes[0])] == []
