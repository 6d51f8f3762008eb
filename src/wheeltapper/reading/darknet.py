"""Darknet (YOLOv1-v4) standard output: `1: 872.1, 872.1 avg loss, 0.000000 rate, 1.2 seconds, 64 images`."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "darknet stdout"

_ROW = re.compile(
    rf"^\s*(?P<step>\d+): (?P<loss>{NUMBER}), (?P<avg>{NUMBER}) avg(?: loss)?, (?P<rate>{NUMBER}) rate, "
    rf"(?P<seconds>{NUMBER}) seconds, (?P<images>\d+) images"
)
_MAP = re.compile(rf"^\s*(?P<name>mean average precision \(mAP(?:@[\d.]+)?\)) = (?P<value>{NUMBER})")
_SNIFF = re.compile(r"^[ \t]*\d+: \S+, \S+ avg(?: loss)?, \S+ rate, \S+ seconds, \d+ images", re.M)


def sniff(head: Head) -> float:
    return 0.96 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, numbered=False, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if found := _ROW.match(body):
        return Row(
            (
                field_of(found, "step", role="step"),
                field_of(found, "loss", split="train", window="batch"),
                field_of(found, "avg", "avg loss", split="train", window="running"),
                field_of(found, "rate"),
                field_of(found, "seconds", unit="s"),
                field_of(found, "images", role="sample"),
            )
        )
    if found := _MAP.match(body):
        return Row((field_of(found, "value", found["name"], split="val", window="eval"),), anchor=False)
    return None
