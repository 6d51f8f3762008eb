"""Logs inside documents: the output of a notebook's cells, a log or a table in Markdown or reStructuredText.

A document is only read where nothing else tells of a training (run/gather.py): it may quote the log of any run. Rows count
where they say an epoch or a step.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wheeltapper.reading import Head
from wheeltapper.reading._blocks import whole
from wheeltapper.reading._text import decode
from wheeltapper.reading._within import readings_within
from wheeltapper.reading.record import Note, Reading
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import ConfigTree

FORMAT = "notebook or document"
ENDINGS = {".ipynb", ".md", ".rst", ".markdown"}
MOST_CELLS = 500
LEAST = 3  # rows of a curve: two are a comparison
_ROW = re.compile(r"<tr[^>]*>(.*?)</tr>", re.S | re.I)
_CELL = re.compile(r"<t[hd][^>]*>(.*?)</t[hd]>", re.S | re.I)
_TAG = re.compile(r"<[^>]{0,500}>")
_FENCE = re.compile(r"^[ \t]*+(?:```.*|~~~.*|\.\. code-block::.*|::[ \t]*+)$", re.M)


_TABLE = re.compile(
    r"(?i)^\s*\|\s*(?:hyper-?)?(?:settings?|param(?:eter)?s?|options?|arguments?|args?|keys?|knobs?|config\w*|name)\s*\|\s*(?:values?|used|set to|this run)\s*\|"
)
_RULE = re.compile(r"^[\s|:-]+$")
_LAUNCH = re.compile(r"^\s*(?:\$ )?((?:[A-Z_]+=\S+ +)*(?:python[\d.]*|torchrun|accelerate launch|deepspeed) \S.*? --?[A-Za-z].*[^\\])$")


def sniff(head: Head) -> float:
    return 0.97 if head.path.suffix.lower() in ENDINGS else 0.0


def read(path: Path) -> list[Reading]:
    notes: list[Note] = []
    text = decode(whole(path, notes))[0]
    cells = list(_outputs(text)) if path.suffix.lower() == ".ipynb" else [("document.log", _FENCE.sub("", text))]
    pieces = [
        (name, body.encode("utf-8", "replace")) for name, body in cells[:MOST_CELLS] if any(map(str.isdigit, body))
    ]
    settings = _settings(text, str(path)) if path.suffix.lower() != ".ipynb" else None
    found = [_placed(r) for r in readings_within(path, pieces, key=path.suffix.lower() == ".ipynb")]
    found = [r for r in found if r.points]
    if len(found) == 1:
        found = [replace(found[0], key=None)]
    found = found or [Reading(str(path), FORMAT, notes=tuple(notes))]
    return [replace(found[0], configs=(settings,)), *found[1:]] if settings is not None else found


def _settings(text: str, file: str) -> ConfigTree | None:
    """The tables of a document whose header calls them settings, as one configuration; every place as in the document."""
    rows, inside = [], False
    for line in text.split("\n"):
        inside = _TABLE.match(line) is not None or (inside and line.lstrip().startswith("|"))
        rows.append(line if inside and not _TABLE.match(line) and not _RULE.match(line) else " " * len(line))
    if not any(map(str.strip, rows)):
        return _command(text, file)
    tree = parse_text("\n".join(rows), file, "keyvalue")
    return replace(tree, text=text, kind="table in a document") if len(tree) else None


def _command(text: str, file: str) -> ConfigTree | None:
    """The one command line with options that a document gives; of several, which one ran is not known."""
    lines = [(n, hit) for n, line in enumerate(text.split("\n"), 1) if (hit := _LAUNCH.match(line))]
    if len({hit[1] for _, hit in lines}) != 1:
        return None
    tree = parse_text(lines[0][1][1], file, "argv", first_line=lines[0][0])
    return replace(tree, kind="command in a document") if len(tree) >= LEAST else None


def _placed(reading: Reading) -> Reading:
    points = tuple(p for p in reading.points if p.clock in ("step", "epoch") and len(p.at) >= LEAST)
    return replace(reading, format=f"{FORMAT} ({reading.format})", points=points)


def _outputs(text: str) -> Iterator[tuple[str, str]]:
    """What each cell of a notebook printed: its streams as one text, each of its HTML tables as a table."""
    try:
        told = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return
    cells = told.get("cells") if isinstance(told, dict) else None
    for cell in cells if isinstance(cells, list) else []:
        outputs = cell.get("outputs") if isinstance(cell, dict) else None
        streams = []
        for output in outputs if isinstance(outputs, list) else []:
            if not isinstance(output, dict):
                continue
            streams.append(_joined(output.get("text")))
            data = output.get("data")
            if isinstance(data, dict):
                table = _joined(data.get("text/html"))
                if "<tr" in table.lower():
                    yield "table.csv", _as_csv(table)
                else:
                    streams.append(_joined(data.get("text/plain")))
        yield "output.log", "".join(streams)


def _joined(text: Any) -> str:
    if isinstance(text, list):
        return "".join(part for part in text if isinstance(part, str))
    return text if isinstance(text, str) else ""


def _as_csv(table: str) -> str:
    rows = ([html.unescape(_TAG.sub("", cell)).strip() for cell in _CELL.findall(row)] for row in _ROW.findall(table))
    return "\n".join("\t".join(row) for row in rows if row) + "\n"
