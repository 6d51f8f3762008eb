"""Readers: one file a format. `readings_of(path)` asks each reader how sure it is and uses the surest.

A reader is a module in this folder with

    FORMAT = "HF trainer_state.json"             # or a function of the file: the name shown to the user
    def sniff(head: Head) -> float               # 0 (not mine) to 1 (certainly mine); reads only `head`
    def read(path: Path) -> list[Reading]        # never raises on bad content: a Note says what was lost

A format that is only ever appended to has `read(path, tail=None)`: with a Tail (_tail.py) it goes on where the last
look stopped, so that follow.py need not read a growing file over. A file that must not be opened while it may be written
has `glance(path)`, which tells what can be told from outside.

Whatever a file does to a reader stays with that file: `ranked` and `read_with` run every reader in the guard of
limits.py, which turns an exception, or more time than a file of its size may take, into a Note.

Generic readers answer at most 0.3, so that a reader that knows the format always wins. Registration is
by being in the folder; modules whose name starts with an underscore, and `record`, are not readers.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from wheeltapper.errors import ContractError
from wheeltapper.limits import Failure, guarded, is_plain_file, seconds_for
from wheeltapper.reading.record import Note, Reading

HEAD_BYTES = 65536  # enough for any header seen in the corpus; small enough to read from thousands of files
NOT_READERS = {"record", "follow"}
_NO_CURVE = re.compile(r"(?i)(^|[^a-z])(lr|learning.?rate|time|taken|eta|speed|mem|size|num)([^a-z]|$)")
_RESULT = re.compile(
    r"(?i)loss|acc|err|rew|ret|score|ppl|perp|nll|elbo|iou|dice|map|psnr|ssim|f1|auc|bleu|rouge|wer|cer|fid|mse|mae|r2|top"
    r"|cost|xent|entropy|prec|rec|ndcg|hit|train|val|test|bpc|bpb|bits|metric|energy|column|^[rl]$"
)


@dataclass(frozen=True, slots=True)
class Head:
    """The start of a file: all that sniffing may look at."""

    path: Path
    size: int
    data: bytes

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", errors="replace")

    @property
    def looks_binary(self) -> bool:
        return b"\x00" in self.data[:4096]


def head_of(path: Path) -> Head:
    with path.open("rb") as file:
        data = file.read(HEAD_BYTES)
    return Head(path=path, size=path.stat().st_size, data=data)


@cache
def readers() -> tuple[ModuleType, ...]:
    """Every reader module, in name order."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_") or info.name in NOT_READERS or info.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for needed in ("FORMAT", "sniff", "read"):
            if not hasattr(module, needed):
                raise ContractError(f"the reader reading/{info.name}.py has no `{needed}`")
        found.append(module)
    return tuple(found)


def ranked(head: Head) -> Iterator[tuple[float, ModuleType]]:
    """Readers that claim the file, surest first."""
    claims = [(_claim(reader, head), reader) for reader in readers()]
    claims = [claim for claim in claims if claim[0] > 0]
    claims.sort(key=lambda claim: (-claim[0], claim[1].__name__))
    yield from claims


def _claim(reader: ModuleType, head: Head) -> float:
    """How sure a reader is. One that fails on the head of a file does not claim it."""
    sure = guarded(lambda: float(reader.sniff(head)))
    return 0.0 if isinstance(sure, Failure) else sure


def read_with(reader: ModuleType, path: Path, *tail: Any) -> list[Reading]:
    """What one reader gets out of a file. Never raises: a Note says what the file did to the reader."""
    readings = guarded(lambda: list(reader.read(path, *tail)), seconds=seconds_for(_size(path)))
    if not isinstance(readings, Failure):
        return readings
    file, shown = str(path), reader.FORMAT if isinstance(reader.FORMAT, str) else reader.__name__.rpartition(".")[2]
    text = readings.text if readings.over_budget else f"{readings.text} (in {readings.where})"
    return [Reading(file, shown, notes=(Note(f"cannot be read as {shown}: {text}", file, level="lost"),))]


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def tells(readings: list[Reading]) -> bool:
    """Did the reader get something out of the file?"""
    return any(r.points or r.configs or r.events or r.checkpoints or r.facts for r in readings)


def has_curve(readings: list[Reading]) -> bool:
    """Is there a series that is more than a setting, a rate or a time?"""
    return any(len(p.values) >= 3 and not _NO_CURVE.search(p.name) for r in readings for p in r.points)


def has_result(readings: list[Reading]) -> bool:
    """Is there a loss or a score by its name, or nothing measured at all? A log of DeepSpeed's lines (skipped, lr, mom) may
    hold the loss on lines of another make."""
    names = [p.name for r in readings for p in r.points]
    return not names or any(map(_RESULT.search, names))


def nameless(readings: list[Reading]) -> bool:
    """Do the columns only go by their number?"""
    return all(p.name.startswith("column ") for r in readings for p in r.points)


def suits(reader: ModuleType, readings: list[Reading], *, after_loose: bool = False) -> bool:
    """Is the file the reader's own, by what it got out of it? A reader of free text (LOOSE) may claim a file for one
    line of it; if it then finds no curve, one that claims the file less surely may have it, if that finds one."""
    if not has_result(readings):
        return False
    return tells(readings) and (has_curve(readings) or not (after_loose or getattr(reader, "LOOSE", False)))


LONGEST = 300  # characters of a line of evaluations; longer ones echo settings
LEFT_OUT = 2  # lines of evaluations that a reader passes over: one may be chance
_BAR = re.compile(r"━|\[=|%\||/step\b")  # a bar that is still drawn shows means that are still being taken
# A line about held-out data, or about an epoch ("Epoch 3 - Accuracy: 0.95  F1: 0.93").
_EVALUATES = re.compile(
    r"(?i)(^|[^a-z])(val|valid|validation|eval|evaluation|dev|test|holdout|held-?out)([^a-z]|$)|^\W*epoch\W{0,3}\d+\W{1,3}[a-z]"
    r"|(^|[^a-z])(recall|precision|ndcg|mrr|map|hit|hr|f1|auc|bleu|wer|cer|psnr|ssim|miou|iou|dice|fid|accuracy)(@\d+)?\s*[:=]\s*\d"
)


def _fuller(path: Path, head: Head, reader: ModuleType, readings: list[Reading]) -> list[Reading]:
    """What the reader got out of a text log; where it passes over evaluations that the reader of free text understands, both
    together: a script that prints its training rows as a known framework does may print its evaluations in a way of its own."""
    if not passes_over(head, reader):
        return readings
    free = importlib.import_module(f"{__name__}.generic_text").explain
    own = reader.explain

    def explain(body: str, line: int) -> Any:
        return own(body, line) or (free(body, line) if _evaluates(body) and len(body) <= LONGEST else None)

    read_log = importlib.import_module(f"{__name__}._log").read_log
    both: list[Reading] = [read_log(path, str(reader.FORMAT), explain)]
    return both if _curves(both) > _curves(readings) else readings


def _by_fold(path: Path, readings: list[Reading]) -> list[Reading]:
    found = guarded(lambda: importlib.import_module(f"{__name__}._folds").by_fold(path, readings), seconds=seconds_for(_size(path)))
    return readings if isinstance(found, Failure) else found


def _evaluates(line: str) -> bool:
    return _EVALUATES.search(line) is not None and _BAR.search(line) is None


def passes_over(head: Head, reader: ModuleType) -> bool:
    """Does the reader of a text log leave out evaluations that the reader of free text understands?"""
    free = importlib.import_module(f"{__name__}.generic_text").explain
    own: Callable[[str, int], Any] | None = getattr(reader, "explain", None)
    if own is None or own is free:
        return False
    passed = 0
    for n, line in enumerate(head.text.splitlines()[:-1]):
        row = free(line, n) if own(line, n) is None and _evaluates(line) else None
        passed += row is not None and any(f.role == "value" for f in row.fields)
    return passed >= LEFT_OUT


def _curves(readings: list[Reading]) -> int:
    return sum(len(p.values) > LEFT_OUT and not _NO_CURVE.search(p.name) for r in readings for p in r.points)


def readings_of(path: Path) -> list[Reading]:
    """Read one file with the surest reader that gets something out of it."""
    try:
        if path.exists() and not is_plain_file(path):
            return [_unreadable(path, "neither a file nor a folder: a pipe, a socket or a device is not opened")]
        head = head_of(path)
    except (OSError, ValueError) as error:
        return [_unreadable(path, f"cannot be opened: {getattr(error, 'strerror', None) or error}")]
    first: list[Reading] | None = None
    for _, reader in ranked(head):
        readings = read_with(reader, path)
        if first is not None and has_curve(first) and nameless(readings):
            continue  # columns by their number, of a table whose columns have names
        if suits(reader, readings, after_loose=first is not None and tells(first)):
            return _by_fold(path, _fuller(path, head, reader, readings))
        if first is None or (tells(readings) and not tells(first)):
            first = readings
    return first or [Reading(str(path), "not understood", notes=(Note("no reader recognises this file", str(path)),))]


def _unreadable(path: Path, why: str) -> Reading:
    return Reading(str(path), "unreadable", notes=(Note(why, str(path), level="lost"),))
