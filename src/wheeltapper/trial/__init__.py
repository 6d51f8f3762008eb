"""Trials: the run forked with one thing changed. This module is what a training script may use.

    from wheeltapper import trial
    for step in range(trial.steps(1000)):
        ...
        trial.step(loss=float(loss))

It needs no numpy and does nothing outside a trial, so the two lines can stay in a script for good.
"""

from __future__ import annotations

import json
import os
import threading
from typing import IO

__all__ = ["config", "out", "resume", "seed", "step", "steps"]

# What an arm finds in its environment (trial/protocol.py sets them).
SEED, STEPS, OUT = "WHEELTAPPER_SEED", "WHEELTAPPER_STEPS", "WHEELTAPPER_OUT"
CONFIG, RESUME = "WHEELTAPPER_CONFIG", "WHEELTAPPER_RESUME"
METRICS_FILE = "wheeltapper_steps.jsonl"

_lock = threading.Lock()
_count = -1
_file: tuple[str, IO[str]] | None = None


def seed(default: int = 0) -> int:
    """The seed this arm is to use; `default` outside a trial."""
    return int(os.environ.get(SEED) or default)


def steps(default: int) -> int:
    """How many steps this arm is to run; `default` outside a trial."""
    return int(os.environ.get(STEPS) or default)


def resume(default: str | None = None) -> str | None:
    """The checkpoint this arm is to start from."""
    return os.environ.get(RESUME) or default


def config(default: str | None = None) -> str | None:
    """The configuration of this arm."""
    return os.environ.get(CONFIG) or default


def out(default: str = ".") -> str:
    """The folder this arm is to write to."""
    return os.environ.get(OUT) or default


def step(at: int | None = None, /, **metrics: float) -> None:
    """Write down numbers of one step. Without `at`, calls are counted from 0. Does nothing outside a trial."""
    global _count, _file
    folder = os.environ.get(OUT)
    if not folder:
        return
    with _lock:
        _count = _count + 1 if at is None else int(at)
        path = os.path.join(folder, METRICS_FILE)
        if _file is None or _file[0] != path:
            # Line by line, so that whoever reads along sees whole rows.
            _file = (path, open(path, "a", buffering=1, encoding="utf-8"))  # noqa: SIM115
        row = {"step": _count, **{name: float(value) for name, value in metrics.items()}}
        _file[1].write(json.dumps(row) + "\n")
