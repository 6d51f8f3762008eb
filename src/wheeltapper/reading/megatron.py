"""Megatron-LM and Megatron-DeepSpeed standard output.

A skipped iteration drops the loss field and keeps the rest, so each row gives what it has. Values that stand
for "not measured" (loss scale -1, grad norm 0.000) are kept as printed.
"""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Role, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading, Window

FORMAT = "Megatron / DeepSpeed stdout"

_ROW = re.compile(r"^\s*(?:\[[^\]]*\]\s*)*iteration\s+(?P<step>[\d,]*\d)\s*/\s*(?P<total>[\d,]*\d)\s*\|")
_CELL = re.compile(rf"(?:^|\|)\s*(?P<name>[^|:]+?)\s*:\s*(?P<value>{NUMBER})\s*(?=\||$)")
_VALID = re.compile(
    r"^\W*(?P<split>validation|test|valid)\w* (?:loss|results?) at (?:the end of training.*?"
    r"|iteration (?P<step>\d+).*?)"
    r"(?=\|)",
    re.I,
)
_TIMERS = re.compile(r"^\s*time \((?P<unit>ms|s)\)\s*\|")
_DEEPSPEED = re.compile(r"^(?:\[Rank \d+\]\s*)?step=(?P<step>\d+), skipped=(?P<skipped>\d+), ")
_DS_LIST = re.compile(rf"(?P<name>lr|mom)=\[+\(?\s*(?P<value>{NUMBER})")
_PIPE = re.compile(r"^(?:\[Rank \d+\]\s*)?steps: (?P<step>\d+) loss: ")
_PIPE_PAIR = re.compile(rf"(?P<name>[A-Za-z][\w /()]*?): (?P<value>{NUMBER})(?=\s|$)")
_SNIFF = re.compile(r"^.{0,60}?iteration\s+[\d,]+\s*/\s*[\d,]+\s*\|", re.M)
_CLOCKS: dict[str, Role] = {"consumed samples": "sample", "consumed tokens": "token"}


def sniff(head: Head) -> float:
    text = head_text(head)
    if _SNIFF.search(text):
        return 0.95
    if "- arguments -" in text and "tensor_model_parallel_size" in text:
        return 0.9  # the rows start after the 64 KB that sniffing sees
    if re.search(r"using world size: \d+.*parallel", text) or re.search(r"step=\d+, skipped=\d+, lr=\[", text):
        return 0.85
    return 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _ROW.match(body):
        fields = [field_of(head, "step", role="step"), field_of(head, "total", role="total_steps")]
        return Row((*fields, *_cells(body, head.end() - 1)))
    if head := _VALID.match(body):
        split = "test" if head["split"].lower() == "test" else "val"
        fields = [field_of(head, "step", role="step")] if head["step"] else []
        cells = _cells(body, head.end(), split=split, window="eval")
        return Row((*fields, *cells), anchor=False) if cells else None
    if head := _TIMERS.match(body):
        cells = _cells(body, head.end() - 1, unit=head["unit"])
        return Row(tuple(cells)) if cells else None
    if head := _DEEPSPEED.match(body):
        fields = [field_of(head, "step", role="step"), field_of(head, "skipped")]
        fields += [field_of(m, "value", m["name"]) for m in _DS_LIST.finditer(body, head.end())]
        return Row(tuple(fields), anchor=False)
    if head := _PIPE.match(body):
        pairs = [field_of(m, "value", m["name"]) for m in _PIPE_PAIR.finditer(body, head.end("step"))]
        return Row((field_of(head, "step", role="step"), *pairs))
    return None


def _cells(
    body: str, start: int, *, split: str | None = None, window: Window | None = None, unit: str | None = None
) -> list[Field]:
    out = []
    for cell in _CELL.finditer(body, start):
        name = cell["name"]
        role = _CLOCKS.get(name, "value")
        # Megatron averages losses over the log interval; everything else is the last iteration's.
        mean: Window | None = window or ("window" if "loss" in name and name != "loss scale" else None)
        out.append(field_of(cell, "value", name, role, split=split, window=mean, unit=unit or _unit(name)))
    return out


def _unit(name: str) -> str | None:
    found = re.search(r"\((ms|s)\)$", name)
    return found[1] if found else None
