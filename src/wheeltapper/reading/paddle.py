"""PaddlePaddle suites: PaddleDetection, PaddleGAN, PaddleOCR, PaddleClas, PaddleSeg."""

from __future__ import annotations

import re
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading._fields import field_of, has_rows, pairs_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Role, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Reading

FORMAT = "Paddle training log"

_HEADERS = tuple(
    re.compile(pattern)
    for pattern in (
        # PaddleDetection: Epoch: [0] [  0/100]
        r"^Epoch: \[(?P<epoch>\d+)\]\s*\[\s*(?P<inner>\d+)/\s*(?P<per>\d+)\]",
        # PaddleGAN: Epoch: 1/200, iter: 0/2400
        r"^Epoch: (?P<epoch>\d+)/(?P<epochs>\d+),? iter: (?P<inner>\d+)/(?P<per>\d+)",
        # PaddleGAN by iterations: Iter: 100/300000
        r"^Iter: (?P<step>\d+)/(?P<total>\d+)",
        # PaddleOCR: epoch: [1/500], global_step: 10,
        r"^epoch: \[(?P<epoch>\d+)/(?P<epochs>\d+)\], (?:iter: \d+|global_step: (?P<step>\d+))",
        # PaddleClas: [Train][Epoch 1/20][Iter: 0/100]
        r"^\[Train\]\[Epoch (?P<epoch>\d+)/(?P<epochs>\d+)\]\[Iter: (?P<inner>\d+)/(?P<per>\d+)\]",
        # PaddleSeg: [TRAIN] epoch: 1, iter: 10/1000,
        r"^\[TRAIN\] epoch: (?P<epoch>\d+), iter: (?P<step>\d+)/(?P<total>\d+)",
    )
)
_EVAL = re.compile(r"^\[(?:Eval|EVAL)\]\s*(?:\[Epoch (?P<epoch>\d+)\]\[Avg\])?|^(?:cur metric|best metric),?")
_PAIR = re.compile(
    rf"(?P<name>[A-Za-z_#][\w./@]*(?:\([^)]*\))?):\s*(?P<value>{NUMBER})\s*"
    r"(?P<unit>images/s|samples/s|sec\b|ms\b|s\b|MB\b|%)?(?=[\s,;]|$)"
)
_SNIFF = re.compile(
    r"pp(?:det|gan|ocr|cls|seg)[\w.]* INFO:|^.{0,60}\[Train\]\[Epoch \d+/\d+\]\[Iter: "
    r"|\[TRAIN\] epoch: \d+, iter: \d+/\d+", re.M
)
_ROLES: dict[str, Role] = {
    "epoch": "epoch",
    "inner": "inner",
    "per": "per_epoch",
    "step": "step",
    "total": "total_steps",
    "epochs": "total_epochs",
}
_NOT_SERIES = {"eta", "epoch", "iter"}
_PLAIN = ("lr", "learning_rate", "batch_cost", "reader_cost", "data_cost", "ips", "avg_", "max_mem", "eta", "lr(")


def sniff(head: Head) -> float:
    return 0.93 if has_rows(head_text(head), _SNIFF) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    return [read_log(path, FORMAT, explain, tail=tail)]


def explain(body: str, _line: int) -> Row | None:
    for pattern in _HEADERS:
        if head := pattern.match(body):
            groups = {k: v for k, v in head.groupdict().items() if v is not None}
            place = [field_of(head, k, role=_ROLES[k]) for k in groups]
            pairs = [_pair(f, None) for f in pairs_of(_PAIR, body, head.end()) if f.name not in _NOT_SERIES]
            return Row((*sorted(place, key=lambda f: f.start), *pairs)) if pairs else None
    if head := _EVAL.match(body):
        place = [field_of(head, "epoch", role="epoch")] if head["epoch"] else []
        pairs = [_pair(f, "val") for f in pairs_of(_PAIR, body, head.end())]
        return Row((*place, *pairs), anchor=False) if pairs else None
    return None


def _pair(spec: Field, split: str | None) -> Field:
    plain = spec.name.startswith(_PLAIN)
    own = None if plain else split or "train"
    window = "eval" if split else None
    return Field(spec.name, spec.start, spec.end, unit=spec.unit, split=own, window=window)  # type: ignore[arg-type]
