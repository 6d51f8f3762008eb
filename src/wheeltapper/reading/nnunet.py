"""nnU-Net training logs, version 1 and 2: an epoch line, then one line per quantity."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "nnU-Net training log"

_EPOCH = re.compile(r"^[Ee]poch:?\s+(?P<epoch>\d+)\s*$")
_VALUE = re.compile(
    r"^(?P<name>train_loss|val_loss|train loss|validation loss(?: \(train=True\))?"
    r"|Current learning rate|lr(?: is now| was)?)"
    rf"\s*:?\s*(?P<value>{NUMBER})"
)
_TIME = re.compile(rf"^(?P<name>Epoch time|This epoch took):?\s*(?P<value>{NUMBER})\s*s")
_DICE = re.compile(r"^(?P<name>Pseudo dice|Average global foreground Dice):?\s*\[(?P<list>.*)\]")
_ITEM = re.compile(rf"(?:np\.float\d+\()?(?P<value>{NUMBER})\)?")
_SNIFF = re.compile(r"nnU-?Net|Pseudo dice|Average global foreground Dice")


def sniff(head: Head) -> float:
    text = head_text(head)
    if re.search(r"Pseudo dice|Average global foreground Dice", text):
        return 0.95
    if re.search(r"^.*train loss : ", text, re.M) and "This epoch took " in text:  # version 1, before its first Dice
        return 0.9
    return 0.85 if _SNIFF.search(text) and re.search(r"[Ee]poch:?\s+\d+\s*$", text, re.M) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, first_epoch=0, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    body = body.rstrip()
    if found := _EPOCH.match(body):
        return Row((field_of(found, "epoch", role="epoch"),))
    if found := _VALUE.match(body):
        name = found["name"]
        split = "val" if name.startswith("val") else "train" if name.startswith("train") else None
        window = "epoch" if split == "train" else "eval" if split else None
        return Row((field_of(found, "value", name, split=split, window=window),))  # type: ignore[arg-type]
    if found := _TIME.match(body):
        return Row((field_of(found, "value", found["name"], unit="s"),))
    if found := _DICE.match(body):
        start, end = found.span("list")
        items = enumerate(_ITEM.finditer(body, start, end))
        return Row(
            tuple(field_of(m, "value", found["name"], split="val", about=str(i), window="eval") for i, m in items)
        )
    return None
