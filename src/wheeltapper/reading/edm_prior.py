"""Loggers that print one sentence per value: `Step 25,000: Loss = 0.061234`, `Validation Loss: 0.0712`."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "step-sentence log"

_STEP = re.compile(
    r"^\W*(?:Step|Iteration|Iter)\s+(?P<step>[\d,]*\d)\s*"
    r"(?:/\s*(?P<total>[\d,]*\d)\s*)?:\s*(?=[A-Za-z])"
)
_PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w .()/-]*?)\s*=\s*(?P<value>{NUMBER})(?P<unit>%|ms|s|GB)?(?=[\s,;|]|$)")
_AT = re.compile(r"(?:validation|evaluation)\b.*\bat step (?P<step>[\d,]*\d)", re.I)
_VALID = re.compile(rf"^\W*(?P<name>(?:Val(?:idation)?|Test|Eval(?:uation)?) [Ll]oss)\s*[:=]\s*(?P<value>{NUMBER})\s*$")
_PSNR = re.compile(
    rf"^\W*(?P<name>(?:Val(?:idation)?|Test|Eval(?:uation)?) PSNR)\s*[:=]\s*(?P<value>{NUMBER})\s*dB"
    rf"(?:\s*\((?:noisy )?input:? (?P<input>{NUMBER}) dB\))?"
)
_SNIFF = re.compile(r"^(?:.{0,80}[-:\]] )?[^\w\n]*(?:Step|Iteration) [\d,]+(?:/[\d,]+)?: [A-Za-z ]+ = [-+\dni.]", re.M)


def sniff(head: Head) -> float:
    return 0.9 if has_rows(head_text(head), _SNIFF, 2) else 0.7 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _STEP.match(body):
        place = [field_of(head, "step", role="step")]
        if head["total"]:
            place.append(field_of(head, "total", role="total_steps"))
        pairs = pairs_of(_PAIR, body, head.end())
        pairs = [replace(f, split="train") if "loss" in f.name.lower() else f for f in pairs]
        return Row((*place, *pairs)) if pairs else None
    if found := _VALID.match(body):
        split = "test" if found["name"].lower().startswith("test") else "val"
        return Row((field_of(found, "value", found["name"], split=split, window="eval"),), anchor=False)
    if found := _PSNR.match(body):
        value = field_of(found, "value", "psnr", split="val", window="eval")
        if not found["input"]:
            return Row((value,), anchor=False)
        return Row((value, field_of(found, "input", "input_psnr", split="val", window="eval")), anchor=False)
    if found := _AT.search(body):
        return Row((field_of(found, "step", role="step"),), learn=False)
    return None
