"""Score-entropy discrete diffusion (SEDD): `step: 50, training_loss: 1.2e+03`, and its descendants' prints."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._bars import bar_row
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "SEDD log"

_STEP = re.compile(
    rf"^step: (?P<step>[\d,]*\d), (?P<name>(?P<kind>training|evaluation)_loss): (?P<value>{NUMBER})\s*$"
)
_EPOCH = re.compile(
    rf"Epoch (?P<epoch>\d+) completed\.?\s*(?P<name>Average loss): (?P<value>{NUMBER})"
)
_VAL = re.compile(rf"(?P<name>Validation loss) at step (?P<step>[\d,]*\d): (?P<value>{NUMBER})")
_SNIFF = re.compile(r"step: [\d,]+, (?:training|evaluation)_loss: |Epoch \d+ completed\.? *Average loss: ")


def sniff(head: Head) -> float:
    return 0.94 if _SNIFF.search(head_text(head)) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if found := _STEP.match(body):
        split, window = ("train", "batch") if found["kind"] == "training" else ("val", "eval")
        value = field_of(found, "value", found["name"], split=split, window=window)  # type: ignore[arg-type]
        return Row((field_of(found, "step", role="step"), value))
    if found := _EPOCH.search(body):
        value = field_of(found, "value", found["name"], split="train", window="epoch")
        return Row((field_of(found, "epoch", role="epoch"), value), anchor=False)
    if found := _VAL.search(body):
        value = field_of(found, "value", found["name"], split="val", window="eval")
        return Row((field_of(found, "step", role="step"), value), anchor=False)
    return bar_row(body)
