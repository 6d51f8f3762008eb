"""The script of a run: assembled from its parts, edited by the fault, then run as it stands."""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from wheeltapper.lab.worlds import loop
from wheeltapper.lab.worlds.draw import Draw

TEXTS = Path(__file__).with_name("scripts")
IMPORTS = [
    "import copy",
    "import math",
    "import time",
    "",
    "import numpy as np",
    "import torch",
    "import torch.nn.functional as F",
    "from torch import nn",
]


class NotApplicable(Exception):  # noqa: N818 (no error: another draw is tried)
    """The fault has no place in this script."""


class Stopped(Exception):  # noqa: N818 (an end, no error)
    """The recorder ended the training, as a crash or a time limit would."""


def body_text(draw: Draw) -> str:
    """Everything after the settings and the logger, with the edits done."""
    family = draw.family
    parts = [(TEXTS / f"{name}.py.txt").read_text() for name in (*family.parts, family.name)]
    if not family.own_loop:
        parts.insert(0, loop.SPLIT.strip() + "\n\n\n")
        if "def build_model" not in parts[-1]:
            parts.append("\n\ndef build_model():\n    return Net()\n")
        if draw.plan["log_memory"]:
            parts.append("\n\n" + loop.MEMORY.strip() + "\n")
        if draw.plan["schedule"] != "plateau":
            parts.append("\n\n" + loop.schedule_text(draw.plan) + "\n")
        parts.append("\n\n" + loop.loop_text(draw.plan))
    text = "".join(parts)
    for old, new in draw.edits:
        if old not in text:
            raise NotApplicable(old)
        text = text.replace(old, new)
    return re.sub(r"\n{4,}", "\n\n\n", text)


class Recorder:
    """Takes what the script logs. The clock is the process's own time, so neighbours do not slow it."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.rows: list[dict[str, Any]] = []
        self.stop_at = stop_at
        self.start = time.process_time()

    def log_metrics(self, split: str, step: int, epoch: int, values: dict[str, float]) -> None:
        clock = time.process_time() - self.start
        self.rows.append({"split": split, "step": step, "epoch": epoch, "clock": clock, "values": dict(values)})
        if self.stop_at is not None and step >= self.stop_at and split != "train":
            raise Stopped


class Clock(SimpleNamespace):
    """Stands in for the module `time` inside the script."""

    def __init__(self) -> None:
        super().__init__(perf_counter=time.process_time, time=time.process_time, sleep=lambda _s: None)


@contextlib.contextmanager
def inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def execute(body: str, cfg: dict[str, Any], recorder: Recorder, folder: Path) -> tuple[str, str | None]:
    """Run the script text; returns what it printed and the error that ended it, if one did."""
    import torch

    torch.set_num_threads(1)
    head = "\n".join(line for line in IMPORTS if line != "import time") + "\n"
    space: dict[str, Any] = {"__name__": "__main__", "log_metrics": recorder.log_metrics, "time": Clock()}
    space["cfg"] = SimpleNamespace(**cfg)
    out = io.StringIO()
    error = None
    random.seed(cfg["seed"])
    with inside(folder), contextlib.redirect_stdout(out):
        try:
            exec(compile(head + body, "train.py", "exec"), space)
        except Stopped:
            error = "stopped"
        except (RuntimeError, ValueError, OverflowError, ZeroDivisionError) as problem:
            error = f"{type(problem).__name__}: {problem}"
    return out.getvalue(), error


def untrained(draw: Draw) -> float | None:
    """The score before any update, where the family has the shared loop."""
    import torch

    if draw.family.own_loop:
        return None
    space: dict[str, Any] = {"__name__": "part", "time": Clock(), "cfg": SimpleNamespace(**draw.cfg)}
    head = "\n".join(IMPORTS) + "\n"
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(head + body_text(draw), "train.py", "exec"), space)
        torch.manual_seed(draw.cfg["seed"])
        _, held_out = space["build_data"]()
        return float(space["evaluate"](space["build_model"](), held_out)[draw.family.main])
