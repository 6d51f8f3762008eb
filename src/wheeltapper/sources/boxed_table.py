"""The boxes that the OpenAI logger and Stable-Baselines print: a key and its value a line, a box a row.

    ----------------------------------
    | rollout/            |          |
    |    ep_rew_mean      | 22.3     |
    | time/               |          |
    |    total_timesteps  | 2048     |
    ----------------------------------

A line without a value ("rollout/") is the head of the keys below it. Long keys end in dots.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.sources import Head
from wheeltapper.sources._clocks import reading_by_clocks
from wheeltapper.sources._events import EventScanner
from wheeltapper.sources._lines import LineFeed
from wheeltapper.sources._place import Anchors
from wheeltapper.sources._table import Stated, TableBuilder
from wheeltapper.sources._text import head_text, number
from wheeltapper.sources.record import Reading

FORMAT = "boxed tables (OpenAI logger, Stable-Baselines)"

_EDGE = re.compile(r"^\s*-{12,}\s*$")
_CELL = re.compile(r"^\s*\|(?P<indent>\s*)(?P<key>[^|]*?)\s*\|\s*(?P<value>[^|]*?)\s*\|\s*$")
_SNIFF = re.compile(r"^-{12,}[ \t]*\n(?:\|[^|\n]+\|[^|\n]*\|[ \t]*\n){3,}-{12,}", re.M)


def sniff(head: Head) -> float:
    boxes = sum(1 for _ in zip(_SNIFF.finditer(head_text(head)), range(2), strict=False))
    return (0.0, 0.4, 0.8)[boxes]


def read(path: Path) -> list[Reading]:
    feed, builder = LineFeed(path), TableBuilder(str(path))
    events = EventScanner(str(path))
    box: list[tuple[str, float]] = []
    section, began = "", 0
    for chunks in (feed.more(), feed.last()):
        for chunk in chunks:
            talk: list[tuple[int, str]] = []
            for line, text in zip(chunk.numbers, chunk.lines, strict=True):
                if _EDGE.match(text):
                    if box:
                        builder.add(began, box)
                    box, section, began = [], "", line
                elif cell := _CELL.match(text):
                    key, value = cell["key"].rstrip("."), number(cell["value"])
                    if not cell["value"] and key.endswith("/"):
                        section = key
                    elif key and value is not None:
                        inside = section and len(cell["indent"]) > 1
                        box.append((f"{section}{key}" if inside else key, value))
                elif text.strip():
                    talk.append((line, text))
            events.feed(talk)
    if box:
        builder.add(began, box)  # the program was stopped inside a box
    builder.notes += feed.notes()
    found, marks = events.finish(Anchors(None, {}))
    reading = reading_by_clocks(builder.table(), FORMAT, _stated, skip={"time/iterations"})
    return [replace(reading, events=(*reading.events, *found), checkpoints=(*reading.checkpoints, *marks))]


def _stated(name: str) -> Stated:
    if name.startswith(("rollout/", "ep_")):
        return Stated(window="running", split="train")  # the mean over the last 100 episodes
    if name.startswith("eval/"):
        return Stated(window="eval", split="val")
    return Stated(window="window") if "loss" in name else Stated()
