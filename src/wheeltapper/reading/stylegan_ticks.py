"""StyleGAN / EDM `log.txt`: one line per tick, counted in thousands of images shown."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "StyleGAN / EDM log.txt"

_TICK = re.compile(rf"^tick (?P<tick>\d+)\s+kimg (?P<kimg>{NUMBER})\s+")
_PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w./]*)\s+(?P<value>{NUMBER})(?=\s|$)")
_METRIC = re.compile(rf'^\{{"results": \{{"(?P<name>[^"]+)": (?P<value>{NUMBER})')
_SNAPSHOT = re.compile(r"snapshot-(?P<kimg>\d+)")
_SNIFF = re.compile(r"^tick \d+\s+kimg [\d.]+", re.M)


def sniff(head: Head) -> float:
    return 0.95 if _SNIFF.search(head_text(head)) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _TICK.match(body):
        place = (field_of(head, "tick"), field_of(head, "kimg", role="sample", scale=1000.0))
        pairs = [f for f in pairs_of(_PAIR, body, head.end()) if f.name != "time"]
        return Row((*place, *pairs))
    if found := _METRIC.match(body):
        value = field_of(found, "value", found["name"], window="eval")
        at = _SNAPSHOT.search(body, found.end())
        if at:
            return Row((value, field_of(at, "kimg", role="sample", scale=1000.0)), anchor=False)
        return Row((value,), anchor=False)
    return None
