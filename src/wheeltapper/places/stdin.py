"""A log on standard input: `ssh host cat train.log | wheeltapper diagnose -`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from wheeltapper.errors import InputError

MOST = 1 << 30  # bytes


def stdin_file() -> Path:
    """What comes in, as a file that is deleted with the program's temporary files."""
    if sys.stdin is None or sys.stdin.isatty():
        raise InputError("- is standard input, and nothing is piped into it.", do="As in: cat train.log | wheeltapper diagnose -")
    folder = Path(tempfile.mkdtemp(prefix="wheeltapper-"))
    file = folder / "stdin"
    left = MOST
    with file.open("wb") as out:
        while left > 0 and (part := sys.stdin.buffer.read(min(left, 1 << 20))):
            out.write(part)
            left -= len(part)
    if left <= 0:
        raise InputError("standard input holds more than 1 GB.", do="Give the file itself.")
    if left == MOST:
        raise InputError("standard input is empty.", do="As in: cat train.log | wheeltapper diagnose -")
    return file
