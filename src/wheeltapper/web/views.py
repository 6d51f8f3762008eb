"""What the templates show, as plain data."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from wheeltapper.errors import InputError
from wheeltapper.finding import Place
from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.table import COLUMNS, SHOWN, Column, column_named, matching, ordered, settings_in
from wheeltapper.judge.compare import knobs_of
from wheeltapper.limits import is_plain_file
from wheeltapper.remedy.case_file import Attempt, cases_of, load_case
from wheeltapper.report.text import clean, clean_lines, duration, num, percent
from wheeltapper.report.view import value_words
from wheeltapper.run.model import Run
from wheeltapper.settings.practice import numbers_of, place_in_practice

PAGE = 100  # runs on one page of the table
MOST_OF_FILE = 4 << 20  # bytes looked through for a line
AROUND = 40  # lines shown before and after
MOST_INCIDENTS = 50
MOST_JOURNAL = 1 << 20  # bytes


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address of the table asks for."""

    search: str = ""
    filters: tuple[str, ...] = ()
    sort: str = ""
    group: str = ""
    columns: tuple[str, ...] = SHOWN
    page: int = 1

    def link(self, **changes: Any) -> str:
        """The address of the same table with something changed; a link that can be shared."""
        values: dict[str, Any] = {
            "q": self.search, "filter": list(self.filters), "sort": self.sort, "group": self.group,
            "columns": "" if self.columns == SHOWN else ",".join(self.columns), "page": self.page if self.page > 1 else "",
        }  # fmt: skip
        values.update(changes)
        pairs = [(k, v) for k, many in values.items() for v in (many if isinstance(many, list) else [many]) if v]
        return "/?" + urlencode(pairs) if pairs else "/"


def asked_by(query: Any) -> Asked:
    """From the parameters of a request (a MultiDict)."""
    page = query.get("page", "1")
    columns = tuple(c for c in query.get("columns", "").split(",") if c)[:30]
    return Asked(
        search=query.get("q", "")[:200],
        filters=tuple(f[:200] for f in query.getlist("filter") if f.strip())[:20],
        sort=query.get("sort", "")[:100],
        group=query.get("group", "")[:100],
        columns=columns or SHOWN,
        page=int(page) if page.isdigit() and len(page) < 6 else 1,
    )


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    kind: str  # of column
    title: str = ""
    share: float | None = None  # drawn as a bar


@dataclass(frozen=True, slots=True)
class TableView:
    columns: tuple[Column, ...]
    rows: tuple[tuple[Member, tuple[Cell, ...]], ...]
    shown: tuple[Member, ...]  # all that pass the filters
    pages: int
    problem: str = ""


def table_view(members: Sequence[Member], asked: Asked) -> TableView:
    """One page of the table. What was asked wrongly is said, and the rest is shown."""
    problem = ""
    try:
        columns = tuple(column_named(name, members) for name in asked.columns)
    except InputError as error:
        columns, problem = tuple(COLUMNS[name] for name in SHOWN), str(error)
    chosen: Sequence[Member] = members
    try:
        chosen = matching(members, [*asked.filters, *_words(asked.search)])
        chosen = ordered(chosen, asked.sort)
    except InputError as error:
        problem = str(error)
    pages = max(1, math.ceil(len(chosen) / PAGE))
    start = (min(asked.page, pages) - 1) * PAGE
    rows = tuple((m, tuple(cell_of(column, m) for column in columns)) for m in chosen[start : start + PAGE])
    return TableView(columns, rows, tuple(chosen), pages, problem)


def _words(search: str) -> list[str]:
    """A search is a filter; where it reads like none, each word must be found."""
    text = search.strip()
    return [text] if any(sign in text for sign in "=<>~") else text.split()


def cell_of(column: Column, member: Member) -> Cell:
    row = member.row
    value = column.of(member)
    if column.id == "verdict":
        return Cell(row.words, "verdict", row.headline)
    if column.id == "p_ill":
        return Cell(percent(row.p_ill), "share", "", row.p_ill)
    if column.id == "cause":
        return Cell(f"{row.cause_title} ({percent(row.cause_share)})" if row.cause else "", "why", row.cause)
    if column.id == "score":
        return Cell("" if row.score is None else f"{num(row.score)}", "number", row.score_name)
    if column.id == "progress":
        return Cell("" if row.progress is None else f"{100 * row.progress:.0f} %", "share", row.state, row.progress)
    if column.id == "duration":
        return Cell("" if not row.seconds else duration(row.seconds), "number")
    if column.id == "changed":
        return Cell(datetime.fromtimestamp(row.changed).strftime("%Y-%m-%d %H:%M") if row.changed else "", "text")
    if value is None:
        return Cell("", "text")
    if isinstance(value, int | float):
        return Cell(num(value), "number")
    return Cell(clean(value, 200), "name" if column.id == "name" else "text")


def columns_offered(members: Sequence[Member]) -> list[tuple[str, str]]:
    """(id, title) of all that can be shown, grouped and sorted by."""
    return [(c.id, c.title) for c in COLUMNS.values()] + [(name, name) for name in settings_in(members)]


@dataclass(frozen=True, slots=True)
class SettingView:
    name: str
    value: str
    place: Place | None
    practice: str
    rare: bool
    default: bool


def settings_view(run: Run) -> list[SettingView]:
    """Settings by meaning, each with its line and its place among public runs."""
    knobs = knobs_of(run)
    numbers = numbers_of(knobs)
    optimizer = knobs.value("optimizer.name")
    named = optimizer if isinstance(optimizer, str) else None
    out = []
    for value in knobs.values():
        number = numbers.get(value.id)
        rank = None if number is None else place_in_practice(value.id, number, optimizer=named)
        words = "" if rank is None or number is None else clean(rank.sentence(number), 200)
        place = knobs.place(value.id) if value.leaf is not None else None
        unit = f" {value.unit}" if value.unit not in (None, "unknown") else ""
        out.append(
            SettingView(value.id, value_words(value.value) + unit, place, words, bool(rank and rank.beyond), value.default)
        )
    return out


@dataclass(frozen=True, slots=True)
class IncidentView:
    step: str
    kind: str
    text: str
    severity: str


def incidents_of(run: Run) -> list[IncidentView]:
    """What a guard inside the training has written beside the run."""
    root = Path(run.root) if os.path.isdir(run.root) else Path(run.root).parent
    try:
        if not is_plain_file(root / "guard.jsonl"):
            return []
        with (root / "guard.jsonl").open("rb") as file:
            lines = file.read(MOST_JOURNAL).splitlines()
    except OSError:
        return []
    out = []
    for line in lines:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(told, Mapping) and told.get("event") == "incident":
            words = (clean(told.get(key, ""), 300) for key in ("step", "kind", "text", "severity"))
            out.append(IncidentView(*words))
    return out[-MOST_INCIDENTS:]


def attempts_of(run: Run) -> list[tuple[str, tuple[Attempt, ...]]]:
    """The plans, follow-ups and trials of the cases that this run belongs to."""
    out = []
    for folder in cases_of(run):
        try:
            out.append((folder.name, load_case(folder).attempts))
        except InputError:
            continue
    return out


@dataclass(frozen=True, slots=True)
class FileView:
    name: str
    lines: tuple[tuple[int, str], ...]
    line: int


def files_of(run: Run) -> dict[str, str]:
    """The files of a run by the name that its page uses; no other can be asked for."""
    folder = run.root if os.path.isdir(run.root) else os.path.dirname(run.root)
    every = dict.fromkeys([*run.files, *run.scripts, *(tree.file for tree in run.configs)])
    return {os.path.relpath(file, folder): file for file in every if file}


def file_view(run: Run, name: str, line: int) -> FileView | None:
    """The lines around one, of a text file of the run."""
    file = files_of(run).get(name)
    if file is None or not is_plain_file(Path(file)):
        return None
    with open(file, "rb") as opened:
        data = opened.read(MOST_OF_FILE)
    if b"\0" in data[:4096]:
        return FileView(name, ((0, "a binary file"),), 0)
    every = data.decode("utf-8", errors="replace").splitlines()
    start = max(0, line - 1 - AROUND)
    shown = [(start + k + 1, clean_lines(text, 600)) for k, text in enumerate(every[start : line + AROUND])]
    return FileView(name, tuple(shown), line)
