"""nanoGPT, llm.c and modded-nanogpt standard output."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading, Window

FORMAT = "nanoGPT-style stdout"

_NANO = re.compile(r"^(?P<kind>step|iter) (?P<step>[\d,]*\d): (?=\w)")
_NANO_PAIR = re.compile(
    rf"(?P<name>[A-Za-z_][\w /]*?) (?P<value>{NUMBER})(?: ?(?P<unit>[A-Za-z%]+(?:/[a-z]+)?))?(?=,|\s*$)"
)
_SHORT = re.compile(r"^s:(?P<step>\d+) (?=\w+:)")
_MODDED = re.compile(r"^step:(?P<step>\d+)/(?P<total>\d+) (?=\w+:)")
_COLON_PAIR = re.compile(rf"(?P<name>[A-Za-z_]\w*):(?P<value>{NUMBER})(?P<unit>ms|s|%)?(?=\s|$)")
_LLMC = re.compile(r"^step\s+(?P<step>\d+)\s*/\s*(?P<total>\d+)\s*(?=[|:])")
_LLMC_PAIR = re.compile(
    rf"(?:[|:]|\s)\s*(?P<name>(?:train |val )?[a-z][\w ]*?) (?P<value>{NUMBER})(?:\s*\([^)]*\))?(?=\s*(?:[|(]|$))"
)
_LLMC_RATE = re.compile(
    rf"(?<=[|\s])(?P<value>{NUMBER})\s*(?P<name>ms|tok/s)(?=\s*(?:[|)]|$))"
    rf"|(?P<mfu>{NUMBER})% (?P<kind>\w+ )?MFU"
)
_ALONE = re.compile(rf"^(?P<name>val loss|HellaSwag|HellaSwag accuracy):? (?P<value>{NUMBER})\s*$")
_SNIFF = re.compile(  # what may stand before the row never gives back what it took: blanks fit twice there
    r"^(?:\[?+[\d:T .,/-]*+\]?+[ \t]*+)(?:(?:step|iter) \d+: .*loss (?:[-\d]|nan|inf)|s:\d+ (?:trl|tel|eval):|step:\d+/\d+ \w+:"
    r"|step\s+\d+/\d+\s*(?:\| (?:train )?loss|: train loss))",
    re.M,
)
# build-nanogpt's log.txt: "250 val 5.9", "250 hella 0.25", "250 train 5.8".
_BARE = re.compile(rf"^(?P<step>\d+) (?P<name>val|hella|train) (?P<value>{NUMBER})\s*$")
_BARE_SNIFF = re.compile(r"^\d+ (?:val|train) (?:\d+\.\d+|nan|inf)[ \t]*$", re.M)
_BARE_NAMES = {"val": "val loss", "train": "train loss", "hella": "HellaSwag accuracy"}
_SPLITS = {"tel": "val", "trl": "train", "eval": "val"}


def sniff(head: Head) -> float:
    text = head_text(head)
    if has_rows(text, _BARE_SNIFF, 4):
        return 0.85
    return 0.93 if has_rows(text, _SNIFF, 2) else 0.85 if has_rows(text, _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if head := _NANO.match(body):
        evaluated = head["kind"] == "step"
        pairs = pairs_of(_NANO_PAIR, body, head.end())
        return _row([field_of(head, "step", role="step"), *(_split(f, evaluated) for f in pairs)])
    for pattern in (_SHORT, _MODDED):
        if head := pattern.match(body):
            pairs = pairs_of(_COLON_PAIR, body, head.end())
            fields = [field_of(head, "step", role="step")]
            if pattern is _MODDED:
                fields.append(field_of(head, "total", role="total_steps"))
            return _row([*fields, *(_split(f, f.name.startswith(("val", "tel", "eval"))) for f in pairs)])
    if head := _LLMC.match(body):
        fields = [field_of(head, "step", role="step"), field_of(head, "total", role="total_steps")]
        fields += [_split(f, False) for f in pairs_of(_LLMC_PAIR, body, head.end())]
        for found in _LLMC_RATE.finditer(body, head.end()):
            group = "value" if found["value"] else "mfu"
            fields.append(field_of(found, group, found["name"] or "MFU", unit=found["name"] or "%"))
        return _row(sorted(fields, key=lambda f: f.start))
    if bare := _BARE.match(body):
        split = "train" if bare["name"] == "train" else "val"
        window: Window = "batch" if split == "train" else "eval"
        value = field_of(bare, "value", _BARE_NAMES[bare["name"]], split=split, window=window)
        return Row((field_of(bare, "step", role="step"), value))
    if alone := _ALONE.match(body):
        return Row((field_of(alone, "value", alone["name"], split="val", window="eval"),))
    return None


def _row(fields: list[Field]) -> Row | None:
    return Row(tuple(fields)) if any(f.role == "value" for f in fields) else None


def _split(spec: Field, evaluated: bool) -> Field:
    """nanoGPT's `step` lines evaluate both splits; its `iter` lines are one batch."""
    low = spec.name.lower()
    split = _SPLITS.get(low)
    if split is None:
        split = "val" if low.startswith("val") else "train" if low.startswith(("train", "loss")) else None
    if low in ("train_time", "step_avg", "time"):
        split = None
    window: Window | None = None
    if split is not None or "loss" in low:
        window = "eval" if evaluated or split == "val" else "batch"
    return Field(spec.name, spec.start, spec.end, unit=spec.unit, split=split, window=window)
