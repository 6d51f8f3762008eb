"""A few of the journeys, wherever the library is installed: `just journeys` makes them all and prints the figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeys.itinerary import IN_CI, PROGRAMS, Fault, Program, name_of, trips
from journeys.travel import lay_out, missing, travel

SMALL = [trip for trip in trips() if name_of(*trip) in IN_CI]


def test_every_fault_is_a_change_of_its_program(tmp_path: Path) -> None:
    for program, fault in trips():
        lay_out(program, fault, tmp_path / name_of(program, fault).replace(":", "-"))
    assert {name_of(*trip) for trip in SMALL} == set(IN_CI)
    assert all(len({fault.name for fault in p.faults}) == len(p.faults) for p in PROGRAMS)


@pytest.mark.slow
@pytest.mark.parametrize(("program", "fault"), SMALL, ids=[name_of(*trip) for trip in SMALL])
def test_a_journey(program: Program, fault: Fault | None, tmp_path: Path) -> None:
    if lacks := missing(program):
        pytest.skip(f"{lacks} is not installed")
    made = travel(program, fault, tmp_path)
    if fault is None:
        assert made.verdict == "sound", made
        return
    assert made.verdict == "ill", made
    assert made.right, made
    if not fault.setting:
        assert made.state == "code", made
        return
    assert made.applies, made
    assert made.places == [program.entry], made  # the script, and never a file that the framework wrote
    assert made.better, made
    assert made.follow_right, made
