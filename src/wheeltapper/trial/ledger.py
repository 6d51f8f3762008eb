"""The ledger of a trial: one line per fact, only ever appended, on the disk before anything depends on it.

Each line is JSON with a checksum in front, so that a line cut by a crash is recognised and passed over: what it
told had not happened yet. A lock keeps two drivers from working on one trial.

    kinds: plan · session · submitted · started · ended · lost · abandoned · verdict · closed
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import math
import os
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from wheeltapper.errors import InputError
from wheeltapper.trial.model import Outcome, Verdict

LEDGER_FILE = "ledger.jsonl"
CURVE_POINTS = 300  # kept of each curve: more than a chart shows
HASH_WHOLE = 64 << 20  # bytes; of a larger file its size, first and last 32 MiB are hashed
MOST_BYTES = 1 << 30  # a million records; more is no ledger of ours
Record = dict[str, Any]


class Ledger:
    """Open for appending by one driver. `records` holds all lines, old and new."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / LEDGER_FILE
        self._file: IO[bytes] = self.path.open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise InputError(
                f"another process is running the trial in {folder}.", do="Wait for it, or stop it first."
            ) from None
        self.records = list(read_ledger(self.path))
        self._begin_a_line()

    def add(self, kind: str, **content: Any) -> Record:
        """Append one record; returns when it is on the disk."""
        return self.add_all([(kind, content)])[0]

    def add_all(self, items: list[tuple[str, Mapping[str, Any]]]) -> list[Record]:
        """Append several records with one wait for the disk."""
        new = [{"kind": kind, "at": round(time.time(), 3), **content} for kind, content in items]
        self._file.write(b"".join(line_of(record) for record in new))
        self._file.flush()
        os.fsync(self._file.fileno())
        self.records += new
        return new

    def _begin_a_line(self) -> None:
        """After a crash in the middle of a line, what follows must not be glued to it."""
        end = self._file.seek(0, os.SEEK_END)
        if end:
            self._file.seek(end - 1)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")

    def close(self) -> None:
        self._file.close()  # gives the lock back as well

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def line_of(record: Record) -> bytes:
    """
    >>> line_of({"kind": "closed"})
    b'35f662be {"kind": "closed"}\\n'
    """
    text = json.dumps(record, default=str).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def read_ledger(path: Path) -> Iterator[Record]:
    """Every whole line of a ledger; cut or damaged lines are passed over."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES)
    except FileNotFoundError:
        return
    for line in data.splitlines():
        check, _, text = line.partition(b" ")
        with contextlib.suppress(ValueError):
            if int(check, 16) == zlib.crc32(text):
                record = json.loads(text)
                if isinstance(record, dict) and "kind" in record:
                    yield record


# ---------------------------------------------------------------- what the lines add up to


@dataclass(frozen=True, slots=True)
class Attempt:
    """One submission of one repeat of an arm."""

    job: str
    arm: str
    seed: int
    number: int  # 1 for the first attempt
    out: str


@dataclass(slots=True)
class Books:
    """The state that a ledger adds up to. A repeat (arm, seed) is counted once, however often it was tried."""

    plan: Record | None = None
    outcomes: dict[str, dict[int, Outcome]] = field(default_factory=dict)  # arm -> seed -> outcome
    open: dict[str, Attempt] = field(default_factory=dict)  # submitted and neither ended nor lost
    tries: dict[tuple[str, int], int] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)  # arm -> repeats that ended without an outcome
    failed: set[tuple[str, int]] = field(default_factory=set)  # not to be tried again
    abandoned: dict[str, str] = field(default_factory=dict)  # arm -> why
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    seconds: float = 0.0  # machine time of all attempts, also of those that were lost
    done: dict[str, int] = field(default_factory=dict)  # arm -> attempts that took `seconds`
    closed: Record | None = None


def books_of(records: list[Record]) -> Books:
    """Add up a ledger. Unknown kinds are left for later versions."""
    books = Books()
    for record in records:
        fold(books, record)
    return books


def fold(books: Books, record: Record) -> None:
    kind = record["kind"]
    if kind == "plan":
        books.plan = books.plan or record
    elif kind == "submitted":
        attempt = Attempt(record["job"], record["arm"], record["seed"], record["attempt"], record["out"])
        books.open[attempt.job] = attempt
        books.tries[attempt.arm, attempt.seed] = attempt.number
    elif kind in ("ended", "lost"):
        attempt_or_none = books.open.pop(record["job"], None)
        if attempt_or_none is None:
            return  # told twice; counted once
        attempt = attempt_or_none
        books.seconds += record.get("seconds") or 0.0
        if record.get("outcome") is not None:
            books.outcomes.setdefault(attempt.arm, {}).setdefault(attempt.seed, outcome_from(record["outcome"]))
            books.done[attempt.arm] = books.done.get(attempt.arm, 0) + 1
        elif record.get("failed"):
            books.failed.add((attempt.arm, attempt.seed))
            books.failures[attempt.arm] = books.failures.get(attempt.arm, 0) + 1
    elif kind == "abandoned":
        books.abandoned[record["arm"]] = record["why"]
    elif kind == "verdict":
        books.verdicts[record["arm"]] = verdict_from(record["verdict"])
    elif kind == "closed":
        books.closed = record
    elif kind == "session":
        books.closed = None  # taken up again


# ---------------------------------------------------------------- values to JSON and back


def outcome_record(outcome: Outcome) -> Record:
    every = max(1, math.ceil(len(outcome.curve) / CURVE_POINTS))
    curve = outcome.curve[::every] if every > 1 else outcome.curve
    if curve and curve[-1] != outcome.curve[-1]:
        curve = (*curve, outcome.curve[-1])
    return {
        "seed": outcome.seed,
        "value": _number(outcome.value),
        "broke": outcome.broke,
        "steps": outcome.steps,
        "curve": [[x, _number(y)] for x, y in curve],
        "note": outcome.note,
        "onset": outcome.onset,
        "rates": outcome.rates,
        "print": outcome.print,
    }


def outcome_from(record: Mapping[str, Any]) -> Outcome:
    curve = tuple((float(x), _float(y)) for x, y in record.get("curve", ()))
    value = record["value"]
    return Outcome(
        int(record["seed"]),
        None if value is None else _float(value),
        record["broke"],
        float(record.get("steps") or 0.0),
        curve,
        str(record.get("note", "")),
        record.get("onset"),
        None if record.get("rates") is None else (float(record["rates"][0]), float(record["rates"][1])),
        str(record.get("print", "")),
    )


def verdict_from(record: Mapping[str, Any]) -> Verdict:
    numbers = {key: None if record.get(key) is None else _float(record[key]) for key in ("effect", "low", "high", "p")}
    return Verdict(
        answer=record["answer"],
        why=str(record["why"]),
        pairs=int(record.get("pairs", 0)),
        more=record.get("more"),
        rung=record.get("rung", "none"),
        deterministic=bool(record.get("deterministic")),
        **numbers,
    )


def verdict_record(verdict: Verdict) -> Record:
    fields = {name: getattr(verdict, name) for name in Verdict.__dataclass_fields__}
    return {key: _number(value) if isinstance(value, float) else value for key, value in fields.items()}


def _number(value: float | None) -> float | str | None:
    """NaN and the infinities as words: JSON has no numbers for them."""
    return value if value is None or math.isfinite(value) else str(float(value))


def _float(value: float | str) -> float:
    return float(value)


def hash_of(path: str | Path) -> str | None:
    """sha256 of a file, or of the ends and the size of a very large one; None where it cannot be read."""
    digest = hashlib.sha256()
    try:
        size = os.path.getsize(path)
        with open(path, "rb") as file:
            if size <= HASH_WHOLE:
                while block := file.read(1 << 20):
                    digest.update(block)
                return digest.hexdigest()
            digest.update(file.read(HASH_WHOLE // 2))
            file.seek(size - HASH_WHOLE // 2)
            digest.update(file.read())
    except OSError:
        return None
    return f"ends:{size}:{digest.hexdigest()}"
