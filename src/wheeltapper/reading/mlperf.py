"""MLPerf training results: `:::MLL` records, and the GNMT console meters printed among them."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head, meters
from wheeltapper.reading._echo import scalar
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Row
from wheeltapper.reading._split_words import split_of
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text
from wheeltapper.reading.record import Event, Reading
from wheeltapper.settings.tree import ConfigTree, Leaf

FORMAT = "MLPerf result"

_OLD = re.compile(
    r"^:::MLL(?:OG|v[\d.]+ \w+)? (?P<time>[\d.]+) (?P<key>\w+): \{\"value\": "
    r"(?P<value>.*?), \"metadata\": (?P<meta>\{.*\})\}"
)
_NEW = re.compile(
    r'^:::MLLOG \{.*?"time_ms": (?P<time>[\d.]+), .*?"key": "(?P<key>\w+)", "value": (?P<value>.*?), '
    r'"metadata": (?P<meta>\{.*\})\}'
)
_NUMERIC = re.compile(rf"\s*({NUMBER})\s*\Z")
_EPOCH = re.compile(r'"epoch_num": (?P<epoch>[\d.]+)')
_SUMMARY = re.compile(r"^Summary: Epoch: (?P<epoch>\d+)")
_PAIR = re.compile(rf"(?P<name>[A-Z][\w ]*?): (?P<value>{NUMBER})(?=[\s,]|$)")
_SNIFF = re.compile(r"^.{0,12}:::MLL", re.M)


def sniff(head: Head) -> float:
    return 0.97 if _SNIFF.search(head_text(head)) else 0.0


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    file = str(path)
    leaves: list[Leaf] = []
    events: list[Event] = []

    def explain(body: str, line: int) -> Row | None:
        found = _OLD.match(body) or _NEW.match(body)
        if found is None:
            if head := _SUMMARY.match(body):
                found_pairs = _PAIR.finditer(body, head.end())
                pairs = [field_of(m, "value", m["name"], split=split_of(m["name"])) for m in found_pairs]
                return Row((field_of(head, "epoch", role="epoch"), *pairs), anchor=False) if pairs else None
            return meters.explain(body, line)
        key, value = found["key"], found["value"]
        if key in ("run_start", "run_stop"):
            status = "success" in found["meta"] or key == "run_start"
            kind = "start" if key == "run_start" else "end" if status else "crash"
            events.append(Event(kind, f"{key} {found['meta'][:120]}", file, line))  # type: ignore[arg-type]
        epoch = _EPOCH.search(body, found.start("meta"))
        if _NUMERIC.match(value) and epoch and key.startswith(("eval", "train", "tracked")):
            split = "val" if key.startswith("eval") else None
            number = field_of(found, "value", key, split=split, window="eval" if split else None)
            return Row((number, field_of(epoch, "epoch", role="epoch")), learn=False, anchor=False)
        if epoch is None and value not in ("null", "true") and not key.startswith(("run_", "submission", "cache")):
            leaves.append(Leaf((key,), scalar(value), value, file, line, found.start("value") + 1))
        return Row(())

    def after(reading: Reading) -> Reading:
        configs = reading.configs
        if leaves:
            configs = (ConfigTree(file, "keyvalue", tuple(leaves), kind="hparams"), *configs)
        return replace(reading, configs=configs, events=tuple(sorted((*reading.events, *events), key=lambda e: e.line)))

    return [read_log(path, FORMAT, explain, after=after, tail=tail)]
