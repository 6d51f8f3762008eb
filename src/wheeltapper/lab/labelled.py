"""Runs with known truth: a folder with `runs/` and `labels.jsonl`, as the worlds and wards write them; and what is seen in each.

What is seen is small (a state for each observation), so thousands of runs are kept in one file and fitted again in a minute.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import msgspec

from wheeltapper.api import audited, read
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.judge.evidence import gather
from wheeltapper.limits import Failure, guarded
from wheeltapper.study import Study

SECONDS = 60.0  # of CPU time for one run
# Names that other generators give to the causes we know under another one.
ALIASES = {
    "overfit-tiny-data": "overfitting", "missing-zero-grad": "zero-grad-missing", "sched-per-epoch": "schedule-unit-mismatch",
    "leak-slowdown": "memory-leak", "loss-weight-drift": "loss-weight-runaway", "curriculum-too-fast": "curriculum-too-hard",
    "fp16-scale-collapse": "loss-scale-collapse", "corrupt-data-from-k": "bad-data-from-step", "ema-no-bn-buffers": "ema-buffers-stale",
    "onecycle-mismatch": "schedule-too-short", "unknown-key-ignored": "unknown-config-key", "ema-too-slow": "ema-horizon-too-long",
    "lr-batch-scaling": "lr-scaled-by-world-size", "accum-not-divided": "accumulation-not-divided",
    "val-preproc-mismatch": "eval-normalisation-mismatch", "val-train-mode": "eval-in-train-mode", "milestones-early": "schedule-too-short",
    "bn-tiny-batch": "batch-norm-small-batch", "dead-inputs": "dead-input-channels", "milestones-late": "milestones-never-reached",
    "warmup-too-long": "warmup-longer-than-run", "wd-too-strong": "weight-decay-too-strong", "kl-weight-too-high": "kl-collapse",
    "cosine-tmax-short": "schedule-too-short", "resume-lr-restart": "schedule-restarted-on-resume", "resume-no-optimizer": "resume-lost-optimizer",
}  # fmt: skip


class Labelled(msgspec.Struct, frozen=True):
    """One run: its truth, and what was seen of it."""

    id: str
    family: str
    format: str
    ill: bool
    cause: str  # ours; empty where healthy
    states: dict[str, int]
    pointers: list[tuple[str, str, str]]  # (cause, grade, id of the finding)
    looked: bool
    also: list[str] = []  # causes that are right, too
    tier: str = ""
    confounded: bool = False
    bare: bool = False  # a program or config without a run: it tells how often checks are right, and nothing else


def cause_of(label: str | None) -> str:
    name = (label or "").replace("_", "-")
    return "" if name == "none" else ALIASES.get(name, name)


def see_all(folder: Path, jobs: int = 1, say: Callable[[str], None] = lambda _: None) -> list[Labelled]:
    """What is seen in every healthy or broken run of a labelled folder."""
    labels = [label for label in _labels(folder) if label.get("class") in ("healthy", "broken")]
    runs = folder / "runs" if (folder / "runs").is_dir() else folder
    work = [(str(runs / str(label["id"])), label) for label in labels]
    if jobs < 2:
        out = [see(path, label) for path, label in work]
    else:
        with ProcessPoolExecutor(jobs) as pool:
            out = list(pool.map(see, *zip(*work, strict=True), chunksize=8))
    say(f"{folder}: {len(out)} runs, {sum(not run.states for run in out)} of them unread")
    return out


UNLABELLED = "unlabelled"  # in trouble, and the record names no cause that we know


def _records(manifest: Path) -> list[dict[str, object]]:
    """Public records: a table with name, format and class; their causes are not labelled."""
    kinds = {"healthy": "healthy", "healthy-hard-negative": "healthy", "trouble": "broken"}
    with manifest.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return [
        {"id": row["name"], "family": "public", "format": row["format"], "class": kinds.get(row["class"]), "cause": UNLABELLED}
        for row in rows
    ]


def _labels(folder: Path) -> list[dict[str, object]]:
    file, manifest = folder / "labels.jsonl", folder / "MANIFEST.csv"
    if manifest.is_file():
        return _records(manifest)
    if not file.is_file():
        raise InputError(f"{folder} has no labels.jsonl.", do="Give a folder with runs/ and labels.jsonl (wheeltapper.lab.worlds makes them).")
    lines = [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    try:
        return [json.loads(line) for line in lines]
    except ValueError as error:
        raise InputError(f"{file} is not one JSON object a line: {error}", do="Make the labels again.") from error


def see(path: str, label: dict[str, object]) -> Labelled:
    """What is seen of one run; nothing where it cannot be read."""
    found = guarded(lambda: _states(path), seconds=SECONDS)
    states, pointers, looked = ({}, [], False) if isinstance(found, Failure) else found
    ill = label["class"] == "broken"
    also = label.get("causes_ok") or []
    return Labelled(
        str(label["id"]), str(label.get("family")), str(label.get("format")), ill, cause_of(str(label.get("cause"))) if ill else "",
        states, pointers, looked, [cause_of(str(c)) for c in also] if isinstance(also, list) else [], str(label.get("tier") or ""),
        bool(label.get("confounded")),
    )  # fmt: skip


def _states(path: str) -> tuple[dict[str, int], list[tuple[str, str, str]], bool]:
    try:
        runs = read(path)
    except WheeltapperError:
        return {}, [], False
    run = max(runs, key=lambda r: sum(len(s) for s in r.series.values()))
    evidence = gather(Study(run), audited(run))
    return {s.id: s.state for s in evidence.seen}, [(p.cause, p.grade, p.finding.id) for p in evidence.pointers], evidence.looked


def save(runs: Iterable[Labelled], file: Path) -> None:
    """What was seen, as JSON; packed where the name ends in .gz."""
    data = msgspec.json.encode(list(runs))
    partial = file.with_suffix(".part")
    partial.write_bytes(gzip.compress(data, mtime=0) if file.suffix == ".gz" else data)
    os.replace(partial, file)


def load(file: Path) -> list[Labelled]:
    try:
        data = file.read_bytes()
        return msgspec.json.decode(gzip.decompress(data) if file.suffix == ".gz" else data, type=list[Labelled])
    except (OSError, EOFError, ValueError, msgspec.DecodeError) as error:
        raise InputError(f"{file} does not hold what was seen of labelled runs: {error}", do="Make it with `lab fit --seen`.") from error


def labelled(place: Path, jobs: int = 1, say: Callable[[str], None] = lambda _: None) -> list[Labelled]:
    """A folder of labelled runs, or a file of what was seen in one."""
    return load(place) if place.is_file() else see_all(place, jobs, say)
