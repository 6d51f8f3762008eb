"""W&B's own transaction log `run-<id>.wandb`, read without wandb (which dropped its Python reader in 0.30).

It is LevelDB's log format: 32 KiB blocks, each record cut into chunks with a checksum, each record a
protobuf. Only the few fields needed are decoded. A live or killed run ends in the middle of a record.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import is_lfs_pointer, lfs_note
from wheeltapper.reading._jsonl import add_row
from wheeltapper.reading._proto import BYTES, FIXED64, VARINT, MalformedError, fields, signed
from wheeltapper.reading._settings import settings_tree
from wheeltapper.reading._table import Table, TableBuilder
from wheeltapper.reading._tail import Tail
from wheeltapper.reading.record import ClockName, Event, Fact, Floats, Note, Reading

FORMAT = "W&B offline log"
MAGIC = b":W&B"
HEADER, BLOCK, CHUNK = 7, 32768, 7
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
RECORD_LIMIT = 1 << 26  # a record over 64 MiB is media or damage, not history
# Field numbers of wandb's Record and of what it holds (proto/wandb_internal.proto).
HISTORY, SUMMARY, CONFIG, ALERT, METRIC, RUN, EXIT, ENVIRONMENT = 2, 3, 5, 10, 12, 17, 18, 26
RUN_ID, RUN_PROJECT, RUN_CONFIG, RUN_NAME = 1, 3, 4, 8
KEY, NESTED_KEY, VALUE_JSON = 1, 2, 16
BOOLEAN, INTEGER, NUMBER, TEXT, JSON = 4, 5, 6, 7, 8  # an item's value in newer versions
STEP_METRIC = 4
# Keys by which frameworks log the step of training; `_step` counts calls of log() unless it was given.
STEPS = ("trainer/global_step", "train/global_step", "global_step", "iter", "iteration", "step", "train/step")


def sniff(head: Head) -> float:
    return 0.99 if head.data.startswith(MAGIC) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    file = str(path)
    log = tail.keep("log", lambda: _Log(file)) if tail else _Log(file)
    ended = tail is None or tail.ended
    try:
        with path.open("rb") as stream:
            if is_lfs_pointer(stream.read(HEADER + 200)):
                return [Reading(file, FORMAT, notes=(lfs_note(file, b""),))]
            for record in log.frames.more(stream, log.builder, ended=ended):
                try:
                    log.record(log.frames.number, record)
                except (MalformedError, ValueError, RecursionError):
                    log.builder.count("{n} records could not be decoded", log.frames.number)
                if log.builder.rows % 65536 == 0:
                    log.builder.flush()
    except OSError as error:
        log.builder.notes.append(Note(f"reading stopped: {error.strerror}", file, level="lost"))
    return [log.reading(keep=tail is not None)]


class Frames:
    """The records of the log in order. A chunk that fails its checksum costs its record; a block is 32 KiB."""

    def __init__(self) -> None:
        self.number = 0  # records so far
        self._block = 0  # where the block begins that is read next, or read on
        self._at = HEADER  # how far it was read
        self._parts: list[bytes] | None = None

    def more(self, stream: Any, builder: TableBuilder, *, ended: bool) -> Iterator[bytes]:
        """The records written since the last look. `ended`: a record that is not whole never will be."""
        cut = "the log ends in the middle of a record (the run is live, or was killed)"
        stream.seek(self._block)
        while block := stream.read(BLOCK):
            while self._at + CHUNK <= len(block):
                check, size, kind = struct.unpack_from("<IHB", block, self._at)
                if kind == 0 and size == 0:
                    if len(block) < BLOCK:
                        break  # padding, or bytes to come
                    self._at = BLOCK
                    continue
                data = block[self._at + CHUNK : self._at + CHUNK + size]
                if len(data) < size or kind not in (FULL, FIRST, MIDDLE, LAST):
                    if len(block) == BLOCK or kind not in (FULL, FIRST, MIDDLE, LAST):
                        if len(block) == BLOCK or ended:
                            builder.count("{n} damaged blocks: their remaining records are lost", self.number + 1)
                            self._at, self._parts = BLOCK, None
                    elif ended:
                        builder.count(cut, self.number + 1)
                        self._parts = None
                    break
                self._at += CHUNK + size
                if zlib.crc32(data, zlib.crc32(bytes([kind]))) != check:
                    builder.count("{n} records fail their checksum and are left out", self.number + 1)
                    self._parts = None
                    continue
                record = self._joined(kind, data, builder)
                if record is not None:
                    self.number += 1
                    yield record
            if len(block) < BLOCK:
                break
            self._block, self._at = self._block + BLOCK, 0
        if ended and self._parts is not None:
            builder.count(cut, self.number + 1)

    def _joined(self, kind: int, data: bytes, builder: TableBuilder) -> bytes | None:
        """The record that a chunk completes."""
        if kind == FULL:
            return data
        if kind == FIRST:
            self._parts = [data]
        elif self._parts is not None:
            self._parts.append(data)
            if sum(map(len, self._parts)) > RECORD_LIMIT:
                builder.count("{n} records over 64 MiB left out", self.number + 1)
                self._parts = None
            elif kind == LAST:
                whole = b"".join(self._parts)
                self._parts = None
                return whole
        return None


class _Log:
    """What the records of one run say."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.builder = TableBuilder(file)
        self.frames = Frames()
        self.config: dict[str, Any] = {}
        self.summary: dict[str, Any] = {}
        self.facts: dict[str, Fact] = {}
        self.events: list[Event] = []
        self.key: str | None = None
        self.step_metrics: dict[str, None] = {}  # what the program said its charts are drawn over

    def record(self, number: int, data: bytes) -> None:
        for field in fields(data, 0, len(data)):
            if field.wire != BYTES:
                continue
            body = data[field.start : field.stop]
            if field.number == HISTORY:
                self._history(number, body)
            elif field.number == SUMMARY:
                self._items(body, 1, self.summary)
            elif field.number == CONFIG:
                self._items(body, 1, self.config)
            elif field.number == RUN:
                self._run(number, body)
            elif field.number == METRIC:
                over = (f for f in fields(body, 0, len(body)) if f.number == STEP_METRIC and f.wire == BYTES)
                self.step_metrics.update((_text(body, f), None) for f in over)
            elif field.number == EXIT:
                code = next((signed(f.value) for f in fields(body, 0, len(body)) if f.number == 1), 0)
                self.facts["exit_code"] = Fact("exit_code", code, f"{self.file}: record {number}")
                text = f"the process ended with code {code}"
                self.events.append(Event("crash" if code else "end", text, self.file, number))
            elif field.number == ALERT:
                words = [_text(body, f) for f in fields(body, 0, len(body)) if f.wire == BYTES and f.number in (1, 2)]
                self.events.append(Event("warning", ": ".join(words)[:500], self.file, number))
            elif field.number == ENVIRONMENT and (said := _environment(body)):
                self.facts["environment"] = Fact("environment", said, f"{self.file}: record {number}")

    def _history(self, number: int, body: bytes) -> None:
        row: dict[str, Any] = {}
        self._items(body, 1, row)
        for field in fields(body, 0, len(body)):
            if field.number == 2 and field.wire == BYTES and "_step" not in row:
                row["_step"] = next((f.value for f in fields(body, field.start, field.stop) if f.number == 1), 0)
        add_row(self.builder, number, row)

    def _items(self, body: bytes, wanted: int, into: dict[str, Any]) -> None:
        """The (key, value as JSON) pairs of a record. A nested key is joined with dots, as wandb shows it."""
        for field in fields(body, 0, len(body)):
            if field.number != wanted or field.wire != BYTES:
                continue
            nested: list[str] = []
            value: Any = None
            for inner in fields(body, field.start, field.stop):
                if inner.number in (KEY, NESTED_KEY) and inner.wire == BYTES:
                    nested.append(_text(body, inner))
                elif inner.number in (VALUE_JSON, JSON) and inner.wire == BYTES:
                    try:
                        value = json.loads(_text(body, inner))  # takes bare NaN and Infinity
                    except ValueError:
                        self.builder.count("{n} values are not JSON", self.builder.rows)
                elif inner.number == TEXT and inner.wire == BYTES:
                    value = _text(body, inner)
                elif inner.number == NUMBER and inner.wire == FIXED64:
                    value = struct.unpack_from("<d", body, inner.start)[0]
                elif inner.number == INTEGER and inner.wire == VARINT:
                    value = (inner.value >> 1) ^ -(inner.value & 1)
                elif inner.number == BOOLEAN and inner.wire == VARINT:
                    value = bool(inner.value)
            into[".".join(nested)] = value

    def _run(self, number: int, body: bytes) -> None:
        place = f"{self.file}: record {number}"
        for field in fields(body, 0, len(body)):
            if field.wire != BYTES:
                continue
            if field.number == RUN_ID:
                self.key = _text(body, field)
            elif field.number == RUN_PROJECT:
                self.facts["project"] = Fact("project", _text(body, field), place)
            elif field.number == RUN_NAME:
                self.facts["run_name"] = Fact("run_name", _text(body, field), place)
            elif field.number == RUN_CONFIG:
                self._items(body[field.start : field.stop], 1, self.config)

    def reading(self, *, keep: bool) -> Reading:
        table = self.builder.table(keep=keep)
        clock, at, others, used = _clocks(table, self.step_metrics)
        hidden = {name for name in table.columns if name.startswith("_wandb")} | {"_timestamp", "_runtime"}
        points = table.points(clock, at, others, skip=used | hidden)
        config = {key: value for key, value in self.config.items() if key != "_wandb"}
        tree = settings_tree(config, self.file, 1, "W&B config")
        told = table.reading(FORMAT, points)
        facts = [*self.facts.values()]
        if not points:
            facts += summary_facts(self.summary, self.file)
        return Reading(
            self.file,
            FORMAT,
            points,
            configs=(tree,) if tree else (),
            facts=tuple(facts),
            events=tuple(self.events),
            notes=told.notes,
            key=self.key,
        )


def _text(data: bytes, field: Any) -> str:
    return data[field.start : field.stop].decode("utf-8", "replace")


# Of wandb's EnvironmentRecord, what a diagnosis may need; nothing that names a person.
_SURROUNDINGS = {1: "os", 2: "python", 5: "args", 6: "program", 18: "gpu", 19: "gpu_count", 25: "cuda"}


def _environment(body: bytes) -> dict[str, str]:
    told: dict[str, str] = {}
    for field in fields(body, 0, len(body)):
        name = _SURROUNDINGS.get(field.number)
        if name is not None:
            text = _text(body, field) if field.wire == BYTES else str(field.value)
            told[name] = f"{told[name]} {text}" if name in told else text
    return told


def _clocks(
    table: Table, step_metrics: Iterable[str]
) -> tuple[ClockName, Floats, dict[ClockName, Floats], set[str]]:
    others: dict[ClockName, Floats] = {}
    used = {"_step"}
    when = table.column("_timestamp")
    if when is not None:
        others["second"] = when
    calls = table.column("_step")
    row = np.arange(len(table), dtype=np.float64) if calls is None else calls
    for name in (*(m for m in step_metrics if "epoch" not in m.lower()), *STEPS):
        told = table.column(name)
        # It must stand on every row that has values, else rows without it would have no place.
        if told is not None and bool(np.isfinite(told).all()) and (len(told) == 1 or bool(np.any(np.diff(told) > 0))):
            others["row"] = row
            return "step", told, others, used | {name}
    epoch = table.column("epoch")
    if epoch is not None and bool(np.isfinite(epoch).all()):
        others["epoch"] = epoch
    return ("row" if calls is None else "step"), row, others, used


def summary_facts(summary: dict[str, Any], file: str) -> list[Fact]:
    """Final values: facts, not a curve of one point beside the curve of a log."""
    return [
        Fact(f"summary/{key}", value, file)
        for key, value in summary.items()
        if isinstance(value, (int, float, str)) and key != "_wandb"
    ]
