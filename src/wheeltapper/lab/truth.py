"""What is true of a lab run, kept beside the run and never inside it.

out/runs/<name>/        what a diagnosis may read; the name is a hash, so that it tells nothing
out/truth/<name>.json   what is true
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec


class Truth(msgspec.Struct, kw_only=True, omit_defaults=False):
    run: str
    system: str
    size: str
    seed: int
    settings: dict[str, Any]
    kind: str  # "healthy" | "fault" | "benign"
    fault: str | None = None
    cause: str | None = None
    also: tuple[str, ...] = ()  # causes that are as right an answer
    knob: str | None = None
    good: Any = None
    bad: Any = None
    onset: float | None = None  # in the system's unit
    unit: str = "step"
    length: int = 0
    harm: str | None = None  # what the fault was meant to do
    script: bool = True  # whether the training script lies in the run folder
    decidable: bool = True  # whether what lies there can tell the cause from its like
    twin: str | None = None
    ended: str = "finished"  # "finished" | "crashed: ..."
    score: float | None = None  # clean quality of the final weights
    reported: float | None = None  # the same quality as the run's own log gives it
    seconds: float = 0.0  # CPU seconds
    memory: float = 0.0  # MiB that the run's own log shows it grew by, where it logs memory
    manifested: bool | None = None  # None: no twin to compare with
    measured: str = ""  # the comparison in words


def run_name(system: str, size: str, seed: int, fault: str | None, settings: dict[str, Any]) -> str:
    """A name that is the same for the same run and says nothing about it."""
    text = json.dumps([system, size, seed, fault, settings], sort_keys=True)
    return "run-" + hashlib.sha256(text.encode()).hexdigest()[:10]


def truth_path(out: Path, run: str) -> Path:
    return out / "truth" / f"{run}.json"


def save(out: Path, truth: Truth) -> None:
    path = truth_path(out, truth.run)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(truth), indent=1) + b"\n")


def load(path: Path) -> Truth:
    return msgspec.json.decode(path.read_bytes(), type=Truth)


def load_all(out: Path) -> list[Truth]:
    return [load(path) for path in sorted((out / "truth").glob("*.json"))]
