"""A run that dies before its end is no success for a script that waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wheeltapper.cli.main import main

JUDGED_AS = "nan-batch"  # how it is told is tested here, not what the judge says

ROWS = "".join(f"step {i}/300 loss {3 * 0.98**i + 0.2:.4f} lr 0.001\n" for i in range(1, 121))
DIED = (
    'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n'
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
)


@pytest.mark.parametrize(("text", "code"), [(ROWS + DIED, 1), (ROWS, 0)])
def test_a_crash_is_told_by_the_exit_code(tmp_path: Path, text: str, code: int) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "train.log").write_text(text)
    assert main(["watch", str(tmp_path / "run"), "--once", "--state", str(tmp_path / "state.json")]) == code
