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

from wheeltapper.reading import Head
from wheeltapper.reading._clocks import reading_by_clocks
from wheeltapper.reading._echo import EchoScanner
from wheeltapper.reading._events import EventScanner
from wheeltapper.reading._lines import LineFeed
from wheeltapper.reading._pairs import place_of
from wheeltapper.reading._place import Anchors
from wheeltapper.reading._table import Stated, TableBuilder
from wheeltapper.reading._text import drawn, head_text, number
from wheeltapper.reading.drawn_table import SETTINGS
from wheeltapper.reading.record import Reading

_PLACES = ("epoch", "step")
FORMAT = "boxed tables (OpenAI logger, Stable-Baselines)"

_EDGE = re.compile(r"^\s*(?:-{12,}|[+|][-+|]{6,})\s*$")
_CELL = re.compile(r"^\s*\|(?P<indent>\s*)(?P<key>[^|]*?)\s*\|\s*(?P<value>[^|]*?)\s*\|\s*$")
_SNIFF = re.compile(
    r"^[ \t]*[-+]{12,}[ \t]*\n(?:[ \t]*\|[^|\n]+\|[^|\n]*\|[ \t]*\n){1,200}[ \t]*[-+|]{12,}[ \t]*\n?(?:[ \t]*\|[^|\n]+\|[^|\n]*\|[ \t]*\n){0,200}",
    re.M,
)


def sniff(head: Head) -> float:
    found = (box for box in _SNIFF.finditer(drawn(head_text(head))) if not _of_settings(box[0]))
    boxes = sum(1 for _ in zip(found, range(2), strict=False))
    return (0.0, 0.4, 0.8)[boxes]


def _of_settings(box: str) -> bool:
    """ "| setting | value |" above the rows: a configuration, printed once."""
    first = next((cell for line in box.split("\n") if (cell := _CELL.match(line))), None)
    return first is not None and SETTINGS.match(f"{first['key'].strip()}|{first['value'].strip()}") is not None


def read(path: Path) -> list[Reading]:
    feed, builder = LineFeed(path), TableBuilder(str(path))
    events, echo = EventScanner(str(path)), EchoScanner(str(path))
    box: list[tuple[str, float]] = []
    section, began = "", 0
    place: list[tuple[str, float]] = []  # what a line above the box says: "──── Epoch 3 ────"
    for chunks in (feed.more(), feed.last()):
        for chunk in chunks:
            talk: list[tuple[int, str]] = []
            for line, text in zip(chunk.numbers, map(drawn, chunk.lines), strict=True):
                if _EDGE.match(text):
                    if box:
                        builder.add(began, [*_unless_told(place, box), *box])
                    box, section, began = [], "", line
                elif cell := _CELL.match(text):
                    key, value = cell["key"].rstrip("."), number(cell["value"])
                    if not cell["value"] and key.endswith("/"):
                        section = key
                    elif key and value is not None:
                        inside = section and len(cell["indent"]) > 1
                        box.append((f"{section}{key}" if inside else key, value))
                elif text.strip():
                    place = [
                        (f.role, float(text[f.start : f.end].replace(",", "")))
                        for f in place_of(text)
                        if f.role in _PLACES
                    ] or place
                    talk.append((line, text))
            events.feed(talk)
            echo.feed(talk)
    if box:
        builder.add(began, [*_unless_told(place, box), *box])  # the program was stopped inside a box
    builder.notes += feed.notes()
    found, marks = events.finish(Anchors(None, {}))
    reading = reading_by_clocks(builder.table(), FORMAT, _stated, skip={"time/iterations"})
    configs = (*reading.configs, *echo.finish())
    return [replace(reading, configs=configs, events=(*reading.events, *found), checkpoints=(*reading.checkpoints, *marks))]


def _unless_told(place: list[tuple[str, float]], box: list[tuple[str, float]]) -> list[tuple[str, float]]:
    told = {name.rsplit("/", 1)[-1].lower() for name, _ in box}
    return [] if told & {"epoch", "step", "total_timesteps", "iterations", "iteration"} else place


def _stated(name: str) -> Stated:
    if name.startswith(("rollout/", "ep_")):
        return Stated(window="running", split="train")  # the mean over the last 100 episodes
    if name.startswith("eval/"):
        return Stated(window="eval", split="val")
    return Stated(window="window") if "loss" in name else Stated()
