"""Any text log: the shape of a row is learnt from its repetition.

A line counts as a row if at least five lines of the file have the same named numbers in the same order; three
are enough if they state a place and a loss, and one if it states a learning rate as well. Its place is the step, iteration or epoch on the line, else the nearest one before, else its number in the file.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import chain
from pathlib import Path
from types import ModuleType

from wheeltapper.reading import (
    HEAD_BYTES,
    Head,
    basicsr,
    cyclegan,
    darknet,
    edm_prior,
    epoch_summary,
    fairseq,
    gluoncv,
    megatron,
    meters,
    mlperf,
    nanogpt,
    nnunet,
    paddle,
    paddle_hapi,
    sedd,
    stylegan_ticks,
    suits,
    yolo_console,
)
from wheeltapper.reading._bars import BAR, bar_row
from wheeltapper.reading._lines import LineFeed
from wheeltapper.reading._log import is_numbered, read_log
from wheeltapper.reading._pairs import loose_pairs, of_batches, place_of, plain
from wheeltapper.reading._rows import Field, Row, RowReader
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import head_text, prefix_of
from wheeltapper.reading.record import Reading

FORMAT = "text log (line shape learnt)"

KNOWN = (
    basicsr, cyclegan, darknet, edm_prior, epoch_summary, fairseq, gluoncv, megatron, meters, mlperf, nanogpt,
    nnunet, paddle, paddle_hapi, sedd, stylegan_ticks, yolo_console,
)  # fmt: skip
LEAST = 5  # lines of one shape; fewer may be talk
LEAST_PLACED = 3  # "step 70: loss = 0.24" is no talk; twice it may still be "best at epoch 7, loss 0.24"
_ON_STEPS = {"lr", "learning_rate", "speed", "ips", "batch_cost"}
_LOSS = re.compile(r"value:(?:[\w /]*[ _/])?loss(?: \([\w ]+\))?(?:@\w+)?$", re.I)
_HELD_OUT = re.compile(r"value:.*@(?:val|test)$", re.I)
_OBJECTIVE = re.compile(r"loss|^(?:xent|nll|ce|ppl)$")
_NOT_LOGS = {
    ".py", ".md", ".json", ".jsonl", ".yaml", ".yml", ".csv", ".tsv", ".html", ".ipynb", ".sh", ".toml", ".xml",
    ".cfg", ".ini", ".js", ".c", ".h", ".cpp", ".cu", ".rst", ".tex", ".svg", ".css", ".slurm", ".sbatch", ".lock",
}  # fmt: skip
_MODULE = re.compile(r"\s*\(\w+\): \w+\(")  # a line of a printed torch model
_SETTING = re.compile(r"\s*[A-Z][A-Z0-9_]*: *[\[(]?[-+\d][^A-Za-z=]*$")  # "IOU_LABELS: [0, 1]": a configuration printed
# Settings that a script dumped as JSON before its first row.
_ROW_FOLLOWS = re.compile(r"[^\s{\[<]|\[\d+[/\]]")
_MOST_SETTINGS = 400  # lines of such a dump
_MAX_LINE = 4000  # a longer line holds arrays or code, not named numbers


def _settings_first(text: str) -> bool:
    """Whether a JSON object that spans lines, closed at the margin, stands before other lines; one pass over the lines."""
    lines = text.lstrip().split("\n", _MOST_SETTINGS + 3)[: _MOST_SETTINGS + 2]
    if lines[0].strip() != "{":
        return False
    end = next((i for i, line in enumerate(lines) if i and line[:1] not in ("", " ", "\t")), None)
    if end is None or end < 2 or lines[end].rstrip() != "}":
        return False
    follows = next((line for line in lines[end + 1 :] if line.strip()), "")
    return _ROW_FOLLOWS.match(follows) is not None


def sniff(head: Head) -> float:
    text = head_text(head)
    start = text.lstrip()[:2]
    # "{'loss': 0.5, ...}" is a dict as Python prints it: the rows of many a log, and no JSON.
    if not text or head.path.suffix.lower() in _NOT_LOGS:
        return 0.0
    if start[:1] in ("{", "<") and start != "{'" and not _settings_first(text):
        return 0.0
    lines = text.split("\n")[:2000]
    numbered = is_numbered(lines)
    seen: Counter[tuple[str, ...]] = Counter()
    for line in lines:
        row = explain(line[prefix_of(line, numbered=numbered).end :], 0)
        if row is not None and row.fields:
            names = _names(row)
            seen[names] += 1
            if seen[names] >= _least(names):
                return 0.3
    return 0.15 if head.path.suffix.lower() in (".log", ".out", ".err", ".txt", "") else 0.05


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    if tail is None:
        known = _known_later(path)
        return known.read(path) if known else [read_repeated(path, FORMAT)]
    # Whether rows of a known make have come is asked again each time the file has doubled: that reads little in all.
    size, choice = tail.keep("choice", lambda: (path.stat().st_size, _known_later(path)))
    if path.stat().st_size > 2 * size and choice is None:
        tail.kept["choice"] = size, choice = path.stat().st_size, _known_later(path)
        if choice is not None:
            tail.forget("log")
    return choice.read(path, tail) if choice else [read_repeated(path, FORMAT, tail)]


def _known_later(path: Path) -> ModuleType | None:
    """A reader that knows rows further on: a long preamble (module loads, model prints) hides them from
    the head that sniffing sees."""
    size = path.stat().st_size
    best: tuple[float, ModuleType | None] = (0.5, None)
    for part in (0.25, 0.5, 0.75, 1.0):
        start = max(0, int(size * part) - HEAD_BYTES)
        if start == 0:
            continue
        with path.open("rb") as file:
            file.seek(start)
            window = Head(path, size, file.read(HEAD_BYTES))
        for reader in KNOWN:
            claim = float(reader.sniff(window))
            if claim > best[0]:
                best = (claim, reader)
    found = best[1]
    return found if found and (not getattr(found, "LOOSE", False) or suits(found, found.read(path))) else None


def read_repeated(path: Path, format_name: str, tail: Tail | None = None) -> Reading:
    """Read twice: first to learn which shapes repeat, then to keep only those."""
    shapes = tail.keep("shapes", lambda: _Shapes(path)) if tail else _Shapes(path)
    wanted = shapes.repeated(ended=tail is None or tail.ended)
    if tail is not None and wanted != tail.keep("wanted", lambda: wanted):
        # Lines that were talk have become rows; the log is read over, once for each kind of row there is.
        tail.forget("log")
        tail.kept["wanted"] = wanted

    def chosen(body: str, line: int) -> Row | None:
        row = explain(body, line)
        return row if row is not None and _names(row) in wanted else None

    return read_log(path, format_name, chosen, tail=tail)


class _Shapes:
    """The shapes of the lines of a file, and how often each came."""

    def __init__(self, path: Path) -> None:
        self._feed = LineFeed(path)
        self._rows: RowReader | None = None

    def repeated(self, *, ended: bool) -> set[tuple[str, ...]]:
        for chunk in chain(self._feed.more(), self._feed.last() if ended else ()):
            if self._rows is None:
                self._rows = RowReader(explain, numbered=is_numbered(chunk.lines))
            self._rows.take_all(chunk.numbers, chunk.lines)
        count: Counter[tuple[str, ...]] = Counter()
        for table in self._rows.tables.values() if self._rows else ():
            names = tuple(_name(f) for f in table.fields if f.role not in ("time", "rank"))
            count[names] += len(table.lines)
        return {names for names, n in count.items() if n >= _least(names)}


def _least(names: tuple[str, ...]) -> int:
    """How many lines of this shape make rows."""
    placed = any(name.startswith(("epoch:", "step:")) for name in names)
    if any(_HELD_OUT.match(name) for name in names):  # "Test set: Average loss: 0.05": written once an epoch
        return LEAST_PLACED
    if not placed or not any(_LOSS.match(name) for name in names):
        return LEAST
    return 1 if "value:learning_rate" in names or "value:lr" in names else LEAST_PLACED


def _names(row: Row) -> tuple[str, ...]:
    constant = ("per_epoch", "total_steps", "total_epochs", "bar_total")
    return tuple(_name(f) for f in row.fields if f.role not in constant)


def _name(f: Field) -> str:
    return f"{f.role}:{f.name}" + (f"@{f.split}" if f.split in ("val", "test") else "")


def explain(body: str, _line: int) -> Row | None:
    if len(body) > _MAX_LINE or not any(c.isdecimal() for c in body) or _MODULE.match(body):
        return None
    if _SETTING.match(body):
        return None
    body = plain(body)
    if "overflow" in body.lower():  # a skipped step tells itself in words: an event
        return None
    if "%|" in body and BAR.search(body):
        return bar_row(body)
    place = place_of(body)
    fields = [*place, *loose_pairs(body, 0, place)]
    if not any(f.role == "value" for f in fields):
        # "Epoch 3" alone still places the lines after it.
        return Row(tuple(fields)) if place and len(body) < 80 else None
    return Row(tuple(sorted(_of_training(fields), key=lambda f: f.start)))


def _of_training(fields: list[Field]) -> list[Field]:
    """The row of a training step: it has the batch of an epoch, or a loss beside the rate or the speed."""
    if any(f.role == "inner" for f in fields):
        return of_batches(fields)
    names = {f.name.lower() for f in fields if f.role == "value" and f.split is None}
    if not any(f.role == "step" for f in fields) or not any(map(_OBJECTIVE.search, names)) or not names & _ON_STEPS:
        return fields
    return of_batches(fields)
