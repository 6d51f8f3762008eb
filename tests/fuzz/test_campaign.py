"""The normal size of the fuzzing campaign (campaign.py, ten minutes in the nightly), and patterns that look over lines."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patterns import patterns, slow

HERE = Path(__file__).resolve().parent
INPUTS = 1500  # less than a minute
# Only ever matched against one short message.
ONE_LINE = {"wheeltapper.settings.check._SPOT"}


@pytest.mark.slow
def test_damaged_records_reach_no_user_as_an_exception(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "campaign.py"), "--inputs", str(INPUTS), "--first", "20000000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env={**os.environ})
    *found, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == []
    assert last["inputs"] == INPUTS, done.stderr[-2000:]


def test_every_find_stays_found() -> None:
    """Inputs that once failed, by what they were; made again from their numbers they would change with the seeds."""
    from campaign import FINDS

    from wheeltapper.reading import readings_of
    from wheeltapper.settings.parse import parse_file

    finds = sorted(FINDS.iterdir())
    assert finds
    for path in finds:
        notes = [note.text for reading in readings_of(path) for note in reading.notes]
        assert not [text for text in notes if "(in " in text or "stopped" in text], path
        parse_file(path)


@pytest.mark.parametrize(("name", "pattern"), list(patterns()), ids=lambda value: value if isinstance(value, str) else "")
def test_a_pattern_over_lines_takes_linear_time(name: str, pattern: re.Pattern[str]) -> None:
    if name not in ONE_LINE:
        assert list(slow(pattern, 0.8, pieces=("\n", " \n", "-\n", "a\n", "1 ", "a"))) == []
