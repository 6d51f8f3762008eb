"""CycleGAN / pix2pix `loss_log.txt` and their standard output.

`iters` counts images since the start of the epoch (the code adds the batch size), so it is a sample clock.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._pairs import SEVERAL, several
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "CycleGAN loss_log.txt"

_HEAD = re.compile(
    rf"^\(epoch:\s*(?P<epoch>\d+),\s*iters:\s*(?P<iters>\d+)(?:,\s*time:\s*(?P<time>{NUMBER}))?"
    rf"(?:,\s*data:\s*(?P<data>{NUMBER}))?[^)]*\)\s*,?"
)
_PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w./-]*):\s*(?P<value>{NUMBER})(?=[\s,]|$)")
_LR = re.compile(rf"^learning rate (?:[\d.eE+-]+ -> |= )(?P<value>{NUMBER})\s*$")
_END = re.compile(r"^End of epoch (?P<epoch>\d+) / (?P<epochs>\d+)")
_SNIFF = re.compile(r"^.{0,40}\(epoch: \d+, iters: \d+", re.M)


def sniff(head: Head) -> float:
    return 0.95 if _SNIFF.search(head_text(head)) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, first_epoch=1, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _HEAD.match(body):
        fields = [field_of(head, "epoch", role="epoch"), field_of(head, "iters", role="inner_sample")]
        fields += [field_of(head, name, unit="s") for name in ("time", "data") if head[name]]
        used: list[tuple[int, int]] = []
        lists = [
            f for hit in SEVERAL.finditer(body, head.end()) for f in several(hit, used)
        ]  # ComboGAN: one of each domain
        pairs = pairs_of(_PAIR, body, head.end())
        values = [*lists, *(f for f in pairs if not any(a < f.end and f.start < b for a, b in used))]
        values = [replace(f, split="train", window="batch") for f in values]
        return Row((*fields, *sorted(values, key=lambda f: f.start)))
    if found := _LR.match(body):
        return Row((field_of(found, "value", "learning rate"),))
    if found := _END.match(body):
        return Row(
            (field_of(found, "epoch", role="epoch"), field_of(found, "epochs", role="total_epochs")),
            learn=False,
            anchor=False,
        )
    return None
