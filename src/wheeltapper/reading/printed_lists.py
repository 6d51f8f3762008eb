"""Curves printed as lists at the end of a script: `train_losses = [2.31, 1.92, ...]`, one name a line."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._generic import readings_of_table
from wheeltapper.reading._lines import LineFeed
from wheeltapper.reading._measure import names_measure
from wheeltapper.reading._table import TableBuilder
from wheeltapper.reading._text import NUMBER, head_text, number
from wheeltapper.reading.record import Reading

FORMAT = "printed lists"
LEAST = 5  # values of a list: fewer may be the rates of groups or the scores of classes
_LIST = re.compile(rf"^\W{{0,4}}(?P<name>[A-Za-z_][\w ./-]{{0,40}}?)['\"]?\s*[:=]\s*\[(?P<values>\s*{NUMBER}(?:\s*,\s*{NUMBER}){{{LEAST - 1},}})\s*,?\s*\]\s*$")
_PLURAL = re.compile(r"(?i)(loss|accuracie|accurac|acc|score|error|reward|return)(?:es|ies|s)\b")
_NO_LOGS = {".py", ".json", ".jsonl", ".yaml", ".yml", ".toml", ".csv", ".tsv", ".sh", ".md", ".ipynb", ".html"}


def sniff(head: Head) -> float:
    if head.path.suffix.lower() in _NO_LOGS or head.looks_binary:
        return 0.0
    found = {hit["name"] for line in head_text(head).split("\n") if (hit := _LIST.match(line)) and names_measure(hit["name"])}
    return 0.29 if len(found) > 1 else 0.1 if found else 0.0  # a log whose rows repeat tells more


def read(path: Path) -> list[Reading]:
    feed = LineFeed(path)
    tracks: dict[str, list[float]] = {}
    for chunks in (feed.more(), feed.last()):
        for chunk in chunks:
            for text in chunk.lines:
                hit = _LIST.match(text) if "[" in text else None
                if hit and names_measure(hit["name"]):
                    values = [number(cell.strip()) for cell in hit["values"].split(",")]
                    tracks[_PLURAL.sub(_singular, hit["name"])] = [v for v in values if v is not None]
    builder = TableBuilder(str(path))
    builder.notes += feed.notes()
    for i in range(max(map(len, tracks.values()), default=0)):
        builder.add(i + 1, [(name, track[i]) for name, track in tracks.items() if i < len(track)])
    return readings_of_table(builder.table(), FORMAT)


def _singular(hit: re.Match[str]) -> str:
    word = hit[1].lower()
    return "accuracy" if word.startswith("accurac") else word
