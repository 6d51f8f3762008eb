"""MXNet Speedometer lines and GluonCV scripts.

The training values on batch lines are means since the start of the epoch: one bad batch stays in them until
the epoch ends.
"""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading, Window

FORMAT = "GluonCV / MXNet log"

_BATCH = re.compile(
    r"^(?:Epoch\s?\[(?P<e1>\d+)\] Batch ?\[(?:\d+-)?(?P<i1>\d+)\]|\[Epoch (?P<e2>\d+)\]\s?\[Batch (?P<i2>\d+)\]"
    r"|Epoch (?P<e3>\d+),? (?:iteration|[Bb]atch) (?P<i3>\d+)(?:/(?P<per>\d+))?:?)"
)
_WHOLE = re.compile(r"^(?:\[Epoch (?P<e1>\d+)\]|Epoch\[(?P<e2>\d+)\]|Epoch (?P<e3>\d+)(?= (?:validation|training)))")
_PAIR = re.compile(
    rf"(?P<name>(?:[A-Za-z_][\w-]* )?[A-Za-z_][\w-]*)\s*(?P<sep>[:=])\s*(?P<value>{NUMBER})\s*"
    r"(?P<unit>samples/sec|sec\b|%)?"
)
_WORDS = re.compile(rf"(?P<name>training loss|validation loss|train loss) (?P<value>{NUMBER})")
_SNIFF = re.compile(
    r"^.{0,60}?(?:Epoch\s?\[\d+\] (?:Batch ?\[\d+|Train-|Validation-|Time cost)"
    r"|\[Epoch \d+\] (?:training|validation|speed|Training|Validation)"
    r"|Epoch \d+ iteration \d+/\d+: training loss|\[Epoch \d+\]\[Batch \d+\], Speed)",
    re.M,
)


def sniff(head: Head) -> float:
    return 0.94 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, first_epoch=0, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _BATCH.match(body):
        k = next(i for i in "123" if head[f"e{i}"] is not None)
        place = [field_of(head, f"e{k}", "epoch", "epoch"), field_of(head, f"i{k}", "inner", "inner")]
        if head["per"]:
            place.append(field_of(head, "per", role="per_epoch"))
        fields = _pairs(body, head.end(), "train", "running")
        return Row((*place, *fields)) if fields else None
    if head := _WHOLE.match(body):
        k = next(i for i in "123" if head[f"e{i}"] is not None)
        low = body[head.end() :].lower()
        evaluated = "valid" in low
        fields = _pairs(body, head.end(), "val" if evaluated else "train", "eval" if evaluated else "epoch")
        place = [field_of(head, f"e{k}", "epoch", "epoch")]
        return Row((*place, *fields), anchor=False) if fields else None
    return None


def _pairs(body: str, start: int, split: str, window: Window) -> list[Field]:
    out: list[Field] = []
    for found in [*_WORDS.finditer(body, start), *_PAIR.finditer(body, start)]:
        name = found["name"].strip()
        for lead in ("training ", "validation "):
            if found.re is _PAIR:
                name = name.removeprefix(lead)
        unit = found.groupdict().get("unit") or None
        plain = unit is not None or name.lower() in ("lr", "speed", "time cost", "training cost", "learning rate")
        out.append(
            field_of(found, "value", name, unit=unit, split=None if plain else split, window=None if plain else window)
        )
    return sorted(out, key=lambda f: f.start)
