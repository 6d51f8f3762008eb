"""YOLOv5 / YOLOv8 standard output: a table row per epoch, redrawn by tqdm; the last state of a row counts."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._bars import BAR
from wheeltapper.reading._fields import field_of, has_rows
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "YOLO stdout"

_TRAIN_HEADER = re.compile(r"^\s*Epoch\s+(?P<names>[Gg][Pp][Uu]_mem\s+\S.*?)\s*$")
_VAL_HEADER = re.compile(r"^\s*Class\s+Images\s+(?P<names>(?:Labels|Targets|Instances)\s+\S.*?)\s*(?::\s*\d+%\|.*)?$")
_ROW = re.compile(r"^\s*(?P<epoch>\d+)/(?P<epochs>\d+)\s+(?P<cells>[\d.]+[GMK]?\s+[-+\d.einaf\s]+?)\s*(?::|$)")
_ALL = re.compile(r"^\s*all\s+(?P<cells>\d+\s+[-+\d.einaf\s]+?)\s*$")
_CELL = re.compile(rf"(?P<value>{NUMBER})(?P<unit>[GMK])?(?=\s|$)")
_SNIFF = re.compile(r"^[ \t]*Epoch\s+[Gg][Pp][Uu]_mem\s+(?:\S+\s+){2,}", re.M)
_COUNTS = {"images", "labels", "targets", "instances", "img_size", "size"}


def sniff(head: Head) -> float:
    return 0.93 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    train: list[str] = []
    val: list[str] = []

    def explain(body: str, _line: int) -> Row | None:
        if header := _TRAIN_HEADER.match(body):
            train[:] = header["names"].split()
            return Row(())
        if row := _ROW.match(body):
            return _train_row(body, row, train)
        if "Class" in body and (header := _VAL_HEADER.match(body)):
            val[:] = ["Images", *_val_names(header["names"])]
            return Row(())
        if (row := _ALL.match(body)) and val:
            fields = _cells(body, row, val, "val")
            return Row(tuple(fields), anchor=False) if fields else None
        return None

    return [read_log(path, FORMAT, explain, tail=tail)]


def _val_names(text: str) -> list[str]:
    """`Box(P R mAP50 mAP50-95)` -> Box(P, R, mAP50, mAP50-95) without the stray bracket."""
    names = (name.partition("(")[2] if "(" in name else name for name in text.split())
    return [name.removesuffix(":").removesuffix(")") for name in names]


def _train_row(body: str, row: re.Match[str], names: list[str]) -> Row | None:
    fields = _cells(body, row, names, "train")
    if not fields:
        return None
    place = [field_of(row, "epoch", role="epoch")]  # "0/99" in YOLOv5 is the last index, not the total
    bar = BAR.search(body, row.end())
    last = [field_of(bar, "total", role="per_epoch")] if bar and bar["total"].isdecimal() else []
    return Row((*place, *fields, *last), last=True)


def _cells(body: str, row: re.Match[str], names: list[str], split: str) -> list[Field]:
    cells = list(_CELL.finditer(body, *row.span("cells")))
    if len(cells) != len(names):
        return []
    out = []
    for name, cell in zip(names, cells, strict=True):
        count = name.lower() in _COUNTS or name.lower() == "gpu_mem"
        # The mean over the epoch so far: in the last state, over the epoch.
        window = None if count else "epoch" if split == "train" else "eval"
        own = None if name.lower() == "gpu_mem" else split
        out.append(field_of(cell, "value", name, unit=cell["unit"], split=own, window=window))  # type: ignore[arg-type]
    return out
