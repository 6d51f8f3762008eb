"""TensorBoard event files, read without TensorBoard: every scalar in file order, nothing sampled or purged.

A rewound run writes steps a second time; TensorBoard hides the first writing, but it is the evidence of
the resume, so it stays. Values keep float32 precision as stored. `lines` are record numbers.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from wheeltapper.reading import Head
from wheeltapper.reading._crc32c import crc32c, masked
from wheeltapper.reading._echo import EchoScanner
from wheeltapper.reading._proto import BYTES, FIXED64, VARINT, MalformedError, fields
from wheeltapper.reading._settings import settings_tree
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._tfcolumns import MAX_TAGS, Columns
from wheeltapper.reading._tfevent import Parsed
from wheeltapper.reading._tfrecord import Damage, Scanner, scan
from wheeltapper.reading.record import Event, Fact, Note, Points, Reading
from wheeltapper.settings.position import word_value
from wheeltapper.settings.tree import ConfigTree

FORMAT = "TensorBoard events"

_SESSION_START, _SESSION_CHECKPOINT = 1, 3
_MAX_DEPTH = 32


def sniff(head: Head) -> float:
    data = head.data
    if len(data) >= 13 and masked(crc32c(data[:8])) == int.from_bytes(data[8:12], "little"):
        if b"brain.Event:" in data[:64]:
            return 1.0
        if data[12] == 0x09:  # starts with a wall time; TFRecords of training data do not
            return 0.7
    return 0.9 if ".tfevents." in head.name else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    file = str(path)
    scanner = tail.keep("scanner", Scanner) if tail else Scanner()
    try:
        size = path.stat().st_size
        with path.open("rb") as opened:
            damage = scan(opened, size, scanner)
    except OSError as error:
        return [Reading(file, FORMAT, notes=(Note(f"cannot be read: {error.strerror}", file, level="lost"),))]
    columns = scanner.columns
    skipped = Counter(columns.skipped)
    configs, events, facts = _specials(file, columns, skipped)
    points = _points(file, columns, skipped, keep=tail is not None)
    if tail is not None and not tail.ended:
        damage = [hurt for hurt in damage if not hurt.tail]  # a record that is being written
    notes = _notes(file, size, scanner.record, damage, columns, skipped)
    return [Reading(file, FORMAT, points, configs, facts, events, notes=tuple(notes))]


def _points(file: str, columns: Columns, skipped: Counter[str], *, keep: bool) -> tuple[Points, ...]:
    """Put the pieces of each series together, in the order in which tags first appear."""
    for tag, rows in columns.singles.items():
        record, wall, step, value = zip(*rows, strict=True)
        piece = np.array(record, np.int64), np.array(wall), np.array(step, np.int64), np.array(value)
        columns.pieces.setdefault(tag, []).append(piece)
    columns.singles.clear()
    found: list[tuple[int, Points]] = []
    for tag in list(columns.pieces):
        pieces = columns.pieces[tag] if keep else columns.pieces.pop(tag)
        lines = np.concatenate([p[0] for p in pieces])
        walls = np.concatenate([p[1] for p in pieces])
        numbers = np.concatenate([p[2] for p in pieces])
        values = np.concatenate([p[3] for p in pieces], dtype=np.float64, casting="unsafe")
        del pieces
        if columns.plugins.get(tag, "scalars") != "scalars":  # said in another record of the tag
            skipped[columns.plugins[tag].rstrip("s")] += len(lines)
            continue
        if np.any(lines[1:] < lines[:-1]):
            order = np.argsort(lines, kind="stable")
            lines, walls, numbers, values = lines[order], walls[order], numbers[order], values[order]
        if keep:
            columns.pieces[tag] = [(lines, walls, numbers, values)]
        steps = numbers.astype(np.float64)
        found.append((int(lines[0]), Points(tag, values, steps, "step", file, lines, {"second": walls})))
    found.sort(key=lambda item: item[0])
    return tuple(points for _, points in found)


def _notes(
    file: str, size: int, records: int, damage: list[Damage], columns: Columns, skipped: Counter[str]
) -> list[Note]:
    notes = []
    if size == 0:
        return [Note("the file is empty: its writer wrote nothing, or not yet", file)]
    for hurt in damage[:20]:
        if hurt.tail:
            said = f"the last {hurt.size:,} bytes are not a whole record: cut off while being written, or damaged"
        else:
            said = f"{hurt.size:,} bytes at offset {hurt.offset:,} are damaged; reading goes on after them"
        notes.append(Note(said, file, hurt.record, level="lost"))
    if len(damage) > 20:
        notes.append(Note(f"{len(damage) - 20} more damaged places", file, level="lost"))
    if columns.damaged:
        first = sorted(columns.damaged)
        named = ", ".join(str(r) for r in first[:5]) + (", ..." if len(first) > 5 else "")
        plural = "records fail their checksum and are" if len(first) > 1 else "record fails its checksum and is"
        notes.append(Note(f"{len(first):,} {plural} left out: record {named}", file, first[0], level="lost"))
    if columns.dropped_tags:
        said = f"more than {MAX_TAGS:,} tags; {len(columns.dropped_tags):,} are left out"
        notes.append(Note(said, file, level="lost"))
    if skipped:
        counts = ", ".join(f"{n:,} {kind}" for kind, n in sorted(skipped.items()))
        notes.append(Note(f"of {records:,} records, values that are not scalars are not read: {counts}", file))
    return notes


def _specials(
    file: str, columns: Columns, skipped: Counter[str]
) -> tuple[tuple[ConfigTree, ...], tuple[Event, ...], tuple[Fact, ...]]:
    configs: list[ConfigTree] = []
    events: list[Event] = []
    facts: list[Fact] = []
    texts = columns.texts
    for record, wall, step, event in sorted(columns.specials, key=lambda item: item[0]):
        if event.version is not None:
            if not facts:
                facts.append(Fact("started_at", wall, f"{file}:{record}"))
            elif len(events) < 1000:  # files put one after the other
                events.append(Event("start", f"a new event file begins ({event.version})", file, record))
        if event.session is not None and len(events) < 1000:
            events.append(_session(file, record, step, event))
        for content in event.hparams:
            tree = settings_tree(_nested(_hparams(content)), file, record, "hparams")
            configs += [tree] if tree else []
        for tag, text in event.texts:
            tree = settings_tree(_text_config(text), file, record, tag.removesuffix("/text_summary"))
            told = (tree,) if tree else _as_in_logs(text, file, record)
            configs += told
            texts -= 1 if told else 0
    if texts:
        skipped["text"] += texts
    return tuple(configs), tuple(events), tuple(facts)


def _session(file: str, record: int, step: int, event: Parsed) -> Event:
    status, said = event.session or (0, "")
    if status == _SESSION_START:
        return Event("start", "session log: start", file, record, float(step), "step")
    if status == _SESSION_CHECKPOINT:
        return Event("checkpoint", f"session log: checkpoint {said}".strip(), file, record, float(step), "step")
    return Event("message", f"session log: status {status} {said}".strip(), file, record, float(step), "step")


def _nested(flat: dict[str, Any]) -> dict[str, Any]:
    """Writers flatten nested settings with "/" (Lightning) or "."; the tree gets them back nested.

    >>> _nested({"optim/lr": 0.1, "optim/name": "adam", "seed": 1})
    {'optim': {'lr': 0.1, 'name': 'adam'}, 'seed': 1}
    """
    out: dict[str, Any] = {}
    for key, value in flat.items():
        *parents, last = [part for part in re.split(r"[/.]", key) if part] or [key]
        place: Any = out
        for part in parents[:_MAX_DEPTH]:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict):
            place[last] = value
        else:
            out[key] = value
    return out


def _hparams(content: bytes) -> dict[str, Any]:
    """The hyperparameters of a session (HParamsPluginData.session_start_info.hparams)."""
    found: dict[str, Any] = {}
    try:
        for part in fields(content, 0, len(content)):
            if part.number != 3 or part.wire != BYTES:
                continue
            for entry in fields(content, part.start, part.stop):
                if entry.number != 1 or entry.wire != BYTES:
                    continue
                key, value = "", None
                for item in fields(content, entry.start, entry.stop):
                    if item.number == 1 and item.wire == BYTES:
                        key = content[item.start : item.stop].decode("utf-8", errors="replace")
                    elif item.number == 2 and item.wire == BYTES:
                        value = _struct_value(content, item.start, item.stop)
                found[key] = value
    except MalformedError:
        pass  # what was read before the damage stays
    return found


def _struct_value(data: bytes, start: int, stop: int) -> Any:
    """google.protobuf.Value, scalars only: hparams hold nothing else."""
    for item in fields(data, start, stop):
        if item.number == 2 and item.wire == FIXED64:
            number = float(np.frombuffer(data, "<f8", 1, item.start)[0])
            return int(number) if number.is_integer() and abs(number) < 2**53 else number
        if item.number == 3 and item.wire == BYTES:
            return data[item.start : item.stop].decode("utf-8", errors="replace")
        if item.number == 4 and item.wire == VARINT:
            return bool(item.value)
    return None


def _as_in_logs(text: str, file: str, record: int) -> tuple[ConfigTree, ...]:
    """Settings in a text as logs print them: a Namespace, "lr=0.1, epochs=30", a line for each."""
    scanner = EchoScanner(file)
    scanner.feed([(record, line.strip().strip("`")) for line in text.splitlines()])
    return scanner.finish()


def _text_config(text: str) -> dict[str, Any]:
    """Settings that a run logged as text: a JSON object (HF Trainer) or a Markdown table (CleanRL)."""
    text = text.strip()
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.DecodeError, RecursionError):
            return {}
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|", 1)] for line in text.splitlines()]
    if len(rows) < 3 or not all(len(row) == 2 for row in rows) or set(rows[1][0] + rows[1][1]) - set("-: "):
        return {}
    return {key: None if value == "None" else word_value(value) for key, value in rows[2:] if key}
