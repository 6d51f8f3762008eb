"""BasicSR, traiNNer-redux and neosr training logs.

The three share a header (epoch, iter, lr) and differ in what the losses are: traiNNer-redux prints means
over the window since the last line, the other two print the last batch. Validation blocks follow the line
of the iteration they were run at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wheeltapper.reading import Head, head_of
from wheeltapper.reading._fields import field_of
from wheeltapper.reading._log import read_log
from wheeltapper.reading._rows import Field, Row
from wheeltapper.reading._tail import Tail
from wheeltapper.reading._text import NUMBER, head_text, number
from wheeltapper.reading.record import Fact, Reading, Window

FORMAT = "BasicSR / traiNNer-redux / neosr log"

_HEADER = re.compile(
    r"^(?:\[[^\]\[]*\]\s*)?[\[<]\s*epoch:\s*(?P<epoch>[\d,]*\d)\s*(?:,|\]\s*\[)\s*iter:\s*(?P<iter>[\d,]*\d)"
)
_ANY_ROW = re.compile(r"[\[<]\s*epoch:\s*[\d,]+\s*(?:,|\]\s*\[)\s*iter:\s*[\d,]+")
_LR = re.compile(rf"\blr:\s*\(?\s*(?P<value>{NUMBER})")
_MORE_LR = re.compile(rf"\s*,\s*(?P<value>{NUMBER})(?=\s*[,)])")
_TIME = re.compile(rf"time \(data\):\s*(?P<time>{NUMBER})\s*\(\s*(?P<data>{NUMBER})\s*\)")
_PAIR = re.compile(
    rf"(?P<name>[A-Za-z_][\w./-]*(?: VRAM)?):\s*(?P<value>{NUMBER})(?:\s*(?P<unit>it/s|GB|MB|ms|%))?(?=[\s,\]]|$)"
)  # the first BasicSR wrote "<epoch:  2, iter:   1,200, lr:2.0e-04> l_g_pix: 3.1e-02"
_BLOCK = re.compile(r"^Validation\s+(?:on\s+)?(?P<about>\[?[^\s\[\]][^\n]*?\]?)\s*$")
_METRIC = re.compile(
    rf"^\s*#\s*(?P<name>[\w./-]+)\s*:\s*(?P<value>{NUMBER})"
    rf"(?:\s*Best:\s*(?P<best>{NUMBER})\s*@\s*(?P<at>[\d,]+)\s*iter)?"
)
_AMP = re.compile(r"Using Automatic Mixed Precision \(AMP\) with .*?\b(fp16|bf16)\b")
_NOT_SERIES = {"eta", "epoch", "iter", "patch", "net", "lr", "scale"}


def sniff(head: Head) -> float:
    text = head_text(head)
    if _ANY_ROW.search(text):
        return 0.95
    banner = "traiNNer-redux" in text or "BasicSR" in text or "neosr" in text
    return 0.8 if banner and "Version Information" in text else 0.0


def _flavour(path: Path) -> tuple[str, Window]:
    text = head_text(head_of(path))
    if "traiNNer-redux" in text or "[performance:" in text or "[perf:" in text:
        return "traiNNer-redux log", "window"
    if "neosr" in text or re.search(r"\[ epoch:", text):
        return "neosr log", "batch"
    return "BasicSR log", "batch"


def read(path: Path, tail: Tail | None = None) -> list[Reading]:
    name, window = tail.keep("flavour", lambda: _flavour(path)) if tail else _flavour(path)
    about: str | None = None
    best: dict[str, Fact] = {}

    def explain(body: str, line: int) -> Row | None:
        nonlocal about
        header = _HEADER.match(body)
        if header:
            return Row(tuple(_fields(body, header, window)))
        block = _BLOCK.match(body)
        if block:
            about = block["about"].strip("[]")
            return Row(())
        metric = _METRIC.match(body)
        if metric and about is not None:
            if metric["best"]:
                what = f"best_{metric['name']}"
                best[what] = Fact(what, number(metric["best"]), f"{path}:{line}")
                best[what + "_step"] = Fact(what + "_step", number(metric["at"]), f"{path}:{line}")
            value = field_of(metric, "value", metric["name"], split="val", about=about, window="eval")
            return Row((value,), learn=False)
        return None

    def other(line: int, text: str) -> Iterator[Fact]:
        if found := _AMP.search(text):
            yield Fact("amp", found[1], f"{path}:{line}")

    def after(reading: Reading) -> Reading:
        return replace(reading, facts=(*reading.facts, *best.values()))

    return [read_log(path, name, explain, other=other, after=after, tail=tail)]


def _fields(body: str, header: re.Match[str], window: Window) -> Iterator[Field]:
    found: list[Field] = [field_of(header, "epoch", role="epoch"), field_of(header, "iter", role="step")]
    lr = _LR.search(body, header.end())
    if lr:
        found.append(field_of(lr, "value", "lr"))
        at, k = lr.end(), 1
        while more := _MORE_LR.match(body, at):
            found.append(field_of(more, "value", f"lr[{k}]"))
            at, k = more.end(), k + 1
    time = _TIME.search(body, header.end())
    if time:
        found += [field_of(time, "time", unit="s"), field_of(time, "data", unit="s")]
    for pair in _PAIR.finditer(body, header.end()):
        if pair["name"] in _NOT_SERIES:
            continue
        own = window if pair["unit"] is None else None
        found.append(field_of(pair, "value", pair["name"], unit=pair["unit"], window=own))
    yield from sorted(found, key=lambda f: f.start)
