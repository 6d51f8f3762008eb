"""fairseq logs in the json and the simple (`key=value`, `| key value`) styles."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Role, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading, Window

FORMAT = "fairseq log"

_JSON_PAIR = re.compile(rf'"(?P<name>[\w./-]+)": "?(?P<value>{NUMBER})"?(?=[,}}\s])')
_INNER = re.compile(r"^(?:\|\s*)?epoch (?P<epoch>\d+):\s+(?P<inner>\d+) / (?P<per>\d+) ")
_EQUAL_PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w./-]*)=(?P<value>{NUMBER})(?=[,\s]|$)")
_SUMMARY = re.compile(
    r"^(?:\|\s*)?(?:(?P<logger>valid|test) \|\s*)?(?:epoch (?P<epoch>\d+)\s*)?\|?\s*(?:valid on '(?P<about>[^']+)' subset\s*)?"
    r"(?=\|\s*(?:epoch \d+\s*\|\s*)?loss )"
)
_BAR_PAIR = re.compile(rf"\|\s*(?P<name>[A-Za-z_][\w./-]*) (?P<value>{NUMBER})(?=\s*(?:\||$))")
_SNIFF = re.compile(
    r'\{"epoch": \d+, (?:"update": |"(?:train|valid)_loss": ")|epoch \d{3}:\s+\d+ / \d+ loss=|\| epoch \d{3} \|.*loss [\d.]+'
    r"|valid on '\w+' subset \|",
)
_CLOCKS: dict[str, Role] = {"num_updates": "step", "train_num_updates": "step", "valid_num_updates": "step"}

_PLAIN = {"wps", "ups", "wpb", "bsz", "train_wall", "wall", "lr", "gnorm", "clip", "loss_scale", "gb_free", "update"}


def sniff(head: Head) -> float:
    text = head_text(head)
    return 0.95 if has_rows(text, _SNIFF) else 0.8 if "fairseq_cli.train" in text else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    if body.startswith('{"epoch":'):
        split, window = ("train", "window") if '"update"' in body and '"loss"' in body else ("train", "epoch")
        if '"valid_' in body or '"test_' in body:
            split, window = "val", "eval"
        return _row(pairs_of(_JSON_PAIR, body, 0), split, window)  # type: ignore[arg-type]
    if head := _INNER.match(body):
        place = [field_of(head, "epoch", role="epoch"), field_of(head, "per", role="per_epoch")]
        return _row(pairs_of(_EQUAL_PAIR, body, head.end()), "train", "window", place)
    if head := _SUMMARY.match(body):
        place = [field_of(head, "epoch", role="epoch")] if head["epoch"] else []
        split, window = ("val", "eval") if head["about"] or head["logger"] else ("train", "epoch")
        pairs = pairs_of(_BAR_PAIR, body, head.end(), about=head["about"])
        return _row(pairs, split, window, place)  # type: ignore[arg-type]
    return None


def _row(pairs: list[Field], split: str, window: Window, place: list[Field] | None = None) -> Row | None:
    """`num_updates` is the step; the rest are series. Wall-clock and speed fields belong to no split."""
    fields = list(place or ())
    for f in pairs:
        short = f.name.removeprefix("train_").removeprefix("valid_")
        role: Role = _CLOCKS.get(f.name, "epoch" if f.name == "epoch" else "value")
        own = None if short in _PLAIN or role != "value" else split
        fields.append(Field(f.name, f.start, f.end, role, split=own, about=f.about, window=window if own else None))
    return Row(tuple(fields)) if any(f.role == "value" for f in fields) else None
