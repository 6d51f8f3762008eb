"""Console meters of the PyTorch examples and their many descendants (MoCo, SwAV, DETR, DeiT, timm, Swin).

`Loss 4.2 (4.23)` holds two series: the batch's value, and the running mean of the epoch in parentheses,
which is named "Loss (avg)" here.
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
from wheeltapper.reading.record import Reading

FORMAT = "PyTorch console meters"

HEADERS = tuple(
    re.compile(pattern)
    for pattern in (
        # Epoch: [0][50/100], Epoch: [0] [ 50/100], Epoch [0][50], TRAIN [0][10/1938], Train: [0/300][0/1251]
        r"^(?P<kind>Epoch|TRAIN|Train(?:ing)?|VALIDATION|TEST)\s*:?\s*\[\s*(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\s*\]"
        r"\s*:?\s*\[\s*(?P<inner>\d+)(?:\s*/\s*(?P<per>\d+))?\s*(?:\(\s*\d+%\))?\s*\]",
        # timm: Train: 0 [   0/1251 (  0%)]
        r"^(?P<kind>Train|Epoch)\s*:?\s*(?P<epoch>\d+)(?:/(?P<epochs>\d+))?\s*\[\s*"
        r"(?P<inner>\d+)\s*/\s*(?P<per>\d+)\s*(?:\(\s*[\d.]+%\))?\s*\]",
    )
)
_TEST = re.compile(r"^(?:Test|Val(?:idation)?|Eval)\s*:?\s*\[\s*(?P<inner>\d+)\s*/\s*(?P<per>\d+)\s*\]", re.I)
_SUMMARY = re.compile(r"^\s*\*+\s*(?=[A-Za-z][\w@.]*\s*:?\s*[-+\d.])")
_METER = re.compile(
    rf"(?P<name>[A-Za-z_][\w@/.\-]*(?: (?:mem|lr|acc|loss)|\s+\d{{1,3}}(?=\s+\d+\.\d))?)\s*:?\s+(?P<value>{NUMBER})(?P<unit>%|MB|GB|s|ms)?"
    rf"(?:\s*\(\s*(?P<avg>{NUMBER})(?:%|s|ms)?\s*\))?(?=[\s,;|]|$)"
)
_SNIFF = re.compile(
    r"^(?:.{0,80}?\s)?(?:Epoch\s*:?\s*\[\s*\d+\]\s*\[\s*\d+(?:\s*/\s*\d+)?\]"
    r"|Train\s*:\s*(?:\[\d+/\d+\]\s*\[|\d+ \[)\s*\d+/\s*\d+).*\d",
    re.M,
)
_NOT_SERIES = {"eta"}


def sniff(head: Head) -> float:
    return 0.85 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    for pattern in HEADERS:
        if head := pattern.match(body):
            evaluating = head["kind"].upper().startswith(("VAL", "TEST"))
            split = "val" if evaluating else "train"
            fields = meters_of(body, head.end(), split)
            if not fields:
                return None
            place = [field_of(head, "epoch", role="epoch")]
            if head["epochs"]:
                place.append(field_of(head, "epochs", role="total_epochs"))
            if evaluating:
                return Row((*place, *fields), anchor=False, last=True)
            place.append(field_of(head, "inner", role="inner"))
            if head["per"]:
                place.append(field_of(head, "per", role="per_epoch"))
            return Row((*place, *fields))
    if head := _TEST.match(body):
        # The running state of an evaluation: only its last line is a result. The batch number is no place.
        fields = [f for f in meters_of(body, head.end(), "val") if f.name.endswith("(avg)")]
        return Row(tuple(fields), anchor=False, last=True) if fields else None
    if head := _SUMMARY.match(body):
        fields = meters_of(body, head.end(), "val", summary=True)
        return Row(tuple(fields), anchor=False) if fields else None
    return None


def meters_of(body: str, start: int, split: str | None, *, summary: bool = False) -> list[Field]:
    """`Name 1.0 (2.0)` pairs. Times and rates belong to no split."""
    out = []
    for found in _METER.finditer(body, start):
        name = found["name"]
        if name in _NOT_SERIES:
            continue
        unit = found["unit"]
        plain = re.match(r"(?i)(?:time|data|batch|tok/s|lr|wd|mem|max mem|loss_scale|speed|eta)", name) is not None
        own = None if plain else split
        out.append(field_of(found, "value", name, unit=unit, split=own, window="eval" if summary else "batch"))
        if found["avg"]:
            out.append(field_of(found, "avg", f"{name} (avg)", unit=unit, split=own, window="running"))
    return out
