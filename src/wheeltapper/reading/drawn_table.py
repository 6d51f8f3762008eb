"""Tables drawn in a text: a line of names and lines of numbers below it, with bars, boxes or wide gaps between the cells.

    ┃ Epoch ┃ Train Loss ┃ Val Loss ┃      | epoch | loss |        epoch    train_loss    valid_loss
    ├───────┼────────────┼──────────┤      |-------|------|      -------  ------------  ------------
    │     1 │     2.3120 │   2.4180 │      |   1   | 2.31 |            1        2.3120        2.4180

rich, tabulate, skorch, fastai, spaCy, pandas and Markdown write them, one row after the other or the whole at the end, in
the midst of other lines. A header that comes again (rows printed one at a time) goes on with the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._clocks import EPOCH, ODD_EPOCH, ODD_STEP, STEP
from wheeltapper.reading._csv import EMPTY, looks_like_name
from wheeltapper.reading._echo import EchoScanner
from wheeltapper.reading._events import EventScanner
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._lines import LineFeed
from wheeltapper.reading._place import Anchors
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._text import drawn, head_text, measure, number, prefix_of
from wheeltapper.reading.record import Reading

FORMAT = "drawn table"
LOOSE = True
LEAST = 3  # rows that make a table
SEEN = 1200  # lines by which a file is judged
_OTHERS = {".json", ".jsonl", ".yaml", ".yml", ".py", ".sh", ".csv", ".tsv", ".toml", ".xml", ".html"}
_RULE = re.compile(r"^[\s|+:=*-]{3,}$")
SETTINGS = re.compile(
    r"(?i)(?:hyper-?)?(?:settings?|param(?:eter)?s?|options?|arguments?|args?|keys?|config\w*|name|field|flag)\|(?:values?|set to)$"
)
_GAP = re.compile(r"\s{2,}|\t")
_CLOCKS = {*STEP, *EPOCH, *ODD_STEP, *ODD_EPOCH, "e"}
_RESULT = re.compile(r"(?i)loss|acc|err|score|reward|return|ppl|f1|auc|iou|dice|psnr|map|mse|mae|bleu|wer|\blr\b")

Cells = tuple[str, ...]


def sniff(head: Head) -> float:
    if head.path.suffix.lower() in _OTHERS or head.data.lstrip()[:1] in (b"{", b"<"):
        return 0.0
    table = _Table()
    for line in drawn(head_text(head)).split("\n")[:SEEN]:
        table.take(line)
        if table.rows >= LEAST:
            return 0.5 if table.sure else 0.28
    return 0.0


def read(path: Path) -> list[Reading]:
    feed, builder, table = LineFeed(path), TableBuilder(str(path)), _Table()
    events, echo = EventScanner(str(path)), EchoScanner(str(path))
    for chunks in (feed.more(), feed.last()):
        for chunk in chunks:
            talk: list[tuple[int, str]] = []
            for line, text in zip(chunk.numbers, chunk.lines, strict=True):
                row = table.take(drawn(text))
                if row:
                    _add(builder, line, row)
                elif text.strip():
                    talk.append((line, text))
            events.feed(talk)
            echo.feed(talk)
    builder.notes += feed.notes()
    found, marks = events.finish(Anchors(None, {}))
    readings = readings_of_table(builder.table(), FORMAT)
    first = readings[0]
    whole = Reading(
        first.file, FORMAT, first.points, (*first.configs, *echo.finish()), first.facts, (*first.events, *found),
        (*first.checkpoints, *marks), first.notes, first.key,
    )  # fmt: skip
    return [whole, *readings[1:]]


def _add(builder: TableBuilder, line: int, row: list[tuple[str, str]]) -> None:
    values: list[tuple[str, float]] = []
    for name, cell in row:
        value = number(cell)
        if value is not None:
            values.append((name, value))
            if cell.endswith("%") and (told := measure(cell)):
                builder.unit(name, told[1])
        elif cell.lower() not in EMPTY:
            builder.text(name, cell)
    builder.add(line, values)


class _Table:
    """The table that the lines so far belong to."""

    def __init__(self) -> None:
        self.names: Cells = ()
        self.rows = 0
        self.sure = False  # a column counts, and another is a loss or a score
        self._first: Cells = ()
        self._new = False  # was the line above the first of a header?

    def take(self, line: str) -> list[tuple[str, str]]:
        """The cells of a row with their names; empty if the line is none."""
        if not line.strip() or _RULE.match(line):
            return []
        body = line[prefix_of(line).end :]
        for cells in _cuts(body, len(self.names)):
            if self._goes_on(cells):
                self.names = tuple(" ".join(filter(None, pair)) for pair in zip(self._first, cells, strict=True))
                self._new = False
                return []
            if self._is_header(cells):
                self._begin(cells)
                self._first, self._new = cells, True
                return []
            self._new = False
            if self.names and (row := self._row(cells)):
                self.rows += 1
                return row
        return []

    def _goes_on(self, cells: Cells) -> bool:
        """The second line of a header, as MATLAB writes it: as many cells, words or nothing in each, and names that the first
        line alone leaves double."""
        if not self._new or len(cells) != len(self._first) or len(set(self._first)) == len(self._first):
            return False
        return any(cells) and all(not c or looks_like_name(c.strip("()")) for c in cells)

    def _begin(self, cells: Cells) -> None:
        names = tuple(cell or f"column {i}" for i, cell in enumerate(cells, 1))
        if len(set(names)) < len(names):
            width = max(map(len, names))  # names that a narrow column cut off alike are none
            names = tuple(
                f"column {i}" if len(name) == width and names.count(name) > 1 else name if names.index(name) == i - 1 else f"{name} ({i - 1})"
                for i, name in enumerate(names, 1)
            )
        if self.rows and not self.sure:
            self.rows = 0
        if not self.rows or set(names) & set(self.names):  # the table of something else does not end this one
            self.names = names
        low = {name.strip("# ").lower() for name in names}
        self.sure = self.sure or bool(low & _CLOCKS and any(_RESULT.search(name) for name in names))

    def _is_header(self, cells: Cells) -> bool:
        said = [cell for cell in cells if cell]
        if len(said) == 2 and SETTINGS.match("|".join(said)):  # a configuration, printed as a table
            return False
        return len(said) >= 2 and len(said) >= len(cells) - 1 and all(looks_like_name(c) and len(c) < 40 for c in said)

    def _row(self, cells: Cells) -> list[tuple[str, str]]:
        if len(cells) == len(self.names) + 1 and number(cells[0]) is not None and self.names[0] != "column 1":
            cells = cells[1:]  # the index that pandas prints has no name
        if len(cells) != len(self.names):
            return []
        told = sum(number(cell) is not None or cell.lower() in EMPTY for cell in cells)
        if number(cells[0]) is None and number(cells[1]) is None:
            return []
        return list(zip(self.names, cells, strict=True)) if 2 * told > len(cells) else []


def _cuts(body: str, width: int) -> Iterator[Cells]:
    """A line cut into cells: by bars, by wide gaps, by blanks where that gives as many as there are names."""
    if body.count("|") > 1:
        yield tuple(cell.strip() for cell in body.strip().strip("|").split("|"))
        return
    wide = tuple(cell for cell in _GAP.split(body.strip()) if cell)
    if len(wide) > 1:
        yield wide
    words = tuple(body.split())
    if width and len(words) in (width, width + 1) and len(words) != len(wide):
        yield words
