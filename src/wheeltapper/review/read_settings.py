"""Claims about settings in a sentence: keys with values, words of the field with numbers, and changes that are proposed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wheeltapper.review.model import AnyClaim, Edit, Setting
from wheeltapper.review.quantities import NUMBER, number_of, quantities
from wheeltapper.review.record import Record

_VALUE = rf"(?P<value>[-+]?(?:{NUMBER})[kK]?(?![\w.]*\w|-\w)|\d+-[a-z]+|true|false|none|null|on|off|'[^']{{1,40}}'|\"[^\"]{{1,40}}\"|[A-Za-z][\w.-]{{2,30}})"
_WORD = re.compile(r"(?<![\w.-])(?:--)?[A-Za-z_][\w.-]*")
_KEY = re.compile(
    rf"(?P<key>(?:--)?[A-Za-z_][\w.-]*)`{{0,2}}\s*(?:(?P<sign>[:=])|(?:is|was|of|at|stays at)?\b|\()\s*`?{_VALUE}", re.I
)
_CODED = re.compile(r"`(?P<key>(?:--)?[A-Za-z_][\w.-]*)`")
_CHANGE = re.compile(
    r"\b(?:set|increase|decrease|raise|lower|reduce|change|enable|disable|add|switch|use|cut|double|halve|tune|adjust)\b",
    re.I,
)
_TO = re.compile(rf"\bto\s+`?{_VALUE}", re.I)
_MISSING = re.compile(
    r"\b(?:not a key|does(?:n't| not) exist|no such key|mis-?spel(?:t|led)|unknown key|not a (?:valid )?(?:option|setting))\b",
    re.I,
)
_ARROW = re.compile(
    rf"\b(?:lower|reduced?|higher|smaller|increase)\b[^:]{{0,12}}\b(?:learning rate|lr)\b[^:]{{0,12}}:\s*(?P<old>{NUMBER})\s*(?:→|->)\s*(?P<new>{NUMBER})",
    re.I,
)
_FILE = re.compile(r"\.(?:pth?|ckpt|safetensors|ya?ml|json|py|sh|log|txt|md|csv)$", re.I)

# Words of the field, the knobs they may mean, and where their number stands.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (r"(?:effective |global )batch(?: size)?", ("batch.effective",)),
    (r"batch(?:[ _]size)?(?: of)?", ("batch.per_device", "batch.global")),
    (r"weight[ _]decay", ("optimizer.weight_decay",)),
    (r"momentum", ("optimizer.momentum", "dynamic.momentum")),
    (r"dropout", ("augment.dropout",)),
    (r"label smoothing", ("loss.label_smoothing",)),
    (r"gamma", ("schedule.gamma",)),
    (r"grad(?:ient)?[ _]accumulation(?: steps)?", ("batch.accumulation",)),
    (r"(?:gradient )?clipping(?: at)?", ("clip.norm",)),
)
_BEFORE: tuple[tuple[str, tuple[str, ...]], ...] = (
    (rf"(?P<n>{NUMBER})\s*(?:warm-?up)\s*(?:steps|iterations|iters|updates)", ("schedule.warmup",)),
    (rf"warm(?:s|ed)?[- ]?up (?:over|for|of) (?P<n>{NUMBER})", ("schedule.warmup",)),
    (rf"evaluat\w+ (?:happens |runs |is done )?every (?P<n>{NUMBER})", ("eval.every",)),
    (rf"(?P<n>{NUMBER})\s*steps per epoch", ("fact.steps_per_epoch",)),
    (rf"train\w*(?: set| data)?(?: has| of| on| holds)?(?: only)? (?P<n>{NUMBER})\s*samples\b", ("data.train_size",)),
    (rf"(?P<n>{NUMBER})\s*classes", ("model.classes",)),
    (rf"(?P<n>{NUMBER})\s*workers per GPU", ("workers-per-gpu",)),
)
_NAMES: tuple[tuple[str, str], ...] = (
    (r"(?i:\boptimi[sz]er\b(?: is| was)?(?: the)?) (?P<name>[A-Z][A-Za-z]+)", "optimizer.name"),
    (r"(?i:\b(?P<name>exponential|linear)\b(?= curriculum))", "curriculum.ramp"),
    (r"(?i)\bruns? in (?P<name>float16|fp16|bf16|bfloat16|float32|fp32)", "precision"),
    (r"\bAMP with (?P<name>fp16|bf16)", "precision"),
)
_NONE: tuple[tuple[str, str], ...] = (
    (r"\bno warm-?up\b|\bwithout (?:any )?warm-?up\b", "schedule.warmup"),
    (r"\bno dropout\b|\bdropout is off\b", "augment.dropout"),
    (r"\bno (?:gradient )?clipping\b", "clip.norm"),
)


def read_settings(text: str, line: int, record: Record, general: bool = False) -> list[AnyClaim]:
    """The claims of a sentence about settings. `general`: it stands where a text tells what to do in some case."""
    proposed = bool(_CHANGE.search(text)) and not re.search(r"\b(?:is|was|are) (?:set|used|cut|reduced)\b", text)
    claims = list(_keys(text, line, record, proposed))
    named = {c.name for c in claims if isinstance(c, Setting | Edit)}
    claims += _phrases(text, line, record, named)
    claims += _by_name(text, line, record)
    claims += _arrows(text, line, general)
    return claims


def _arrows(text: str, line: int, general: bool) -> Iterator[AnyClaim]:
    """ "Lower learning rate: 1e-4 → 5e-5": a change that is proposed."""
    match = _ARROW.search(text)
    if match is not None and not general:
        yield Edit(text=text, line=line, name="optimizer.lr", old=number_of(match["old"]), new=number_of(match["new"]))


def _keys(text: str, line: int, record: Record, proposed: bool) -> Iterator[AnyClaim]:
    """Keys by their own name; a name that is a curve of the log is no key."""
    seen: set[str] = set()
    curves = {name.lower() for s in record.run.series.values() for name in (s.raw, s.name)}
    to = _TO.search(text)
    for match in _CODED.finditer(text):
        key = match["key"]
        if _FILE.search(key) or key.lower() in curves or re.search(r"checkpoint", key):
            continue
        if not re.search(r"[_.-]", key.strip("-")) and not record.leaves_named(key):
            continue  # a plain word in code: a name of anything
        if _MISSING.search(text):
            seen.add(key)
            yield Setting(text=text, line=line, name=key, present=False)
        elif proposed:
            seen.add(key)
            yield Edit(text=text, line=line, name=key, new=_scalar(to["value"]) if to else None)
    for match in (m for word in _WORD.finditer(text) if (m := _KEY.match(text, word.start()))):
        key = match["key"]
        if key in seen or key.lower() in curves or (not record.leaves_named(key) and not record.list_named(key)):
            continue
        plain_word = not re.search(r"[_=:]", match.group(0))
        value = _scalar(match["value"])
        if (plain_word and (isinstance(value, str) or key.lower() in _COMMON)) or (
            isinstance(value, str) and not match["sign"] and value.lower() in _LITTLE
        ):
            continue
        seen.add(key)
        if proposed and not match["sign"] and to is not None:
            yield Edit(text=text, line=line, name=key, new=_scalar(to["value"]))
        else:
            yield Setting(text=text, line=line, name=key, value=value, slack=_slack(match["value"]))


_COMMON = {
    "rate",
    "size",
    "weight",
    "weights",
    "start",
    "width",
    "depth",
    "features",
    "data",
    "model",
    "task",
    "loss",
    "epochs",
    "scale",
    "name",
    "type",
    "batch",
    "seed",
    "steps",
    "lr",
    "scheduler",
    "sched",
    "optimizer",
    "momentum",
    "dropout",
}
_LITTLE = {
    "the",
    "and",
    "was",
    "with",
    "for",
    "has",
    "but",
    "are",
    "not",
    "too",
    "from",
    "after",
    "which",
    "while",
    "so",
    "very",
    "only",
    "constant",
    "its",
    "that",
    "set",
    "used",
}


def _scalar(raw: str) -> Any:
    """A value as a config would hold it."""
    bare = raw.strip("'\"`")
    word = bare.lower()
    if word in ("true", "on"):
        return True
    if word in ("false", "off"):
        return False
    if word in ("none", "null"):
        return None
    try:
        return number_of(bare[:-1]) * 1000 if re.fullmatch(rf"(?:{NUMBER})[kK]", bare) else number_of(bare)
    except ValueError:
        return bare


def _slack(raw: str) -> float:
    found = quantities(raw)
    return found[0].slack if found else 0.0


def _phrases(text: str, line: int, record: Record, named: set[str]) -> Iterator[AnyClaim]:
    for pattern, knobs in _PHRASES:
        match = re.search(
            rf"(?<![\w`.-]){pattern}\W{{0,3}}(?:is |was |of |=\s*)?\W{{0,2}}(?P<n>{NUMBER})(?![\w]|\s*[-–→%])",
            text,
            re.I,
        )
        if match is not None and not named & set(knobs):
            yield from _as_setting(text, line, record, knobs, match["n"])
    for pattern, knobs in _BEFORE:
        match = re.search(pattern, text, re.I)
        if match is not None:
            yield from _as_setting(text, line, record, knobs, match["n"])

    if not record.run.find("lr"):  # else it is read as a curve
        match = re.search(rf"\blearning rates?(?: is| are| of)?\W{{0,3}}(?P<n>{NUMBER})", text, re.I)
        if match is not None:
            yield from _as_setting(text, line, record, ("optimizer.lr", "optimizer.lr_g", "optimizer.lr_d"), match["n"])


def _as_setting(text: str, line: int, record: Record, knobs: tuple[str, ...], raw: str) -> Iterator[AnyClaim]:
    """One claim, about the first of the knobs that fits; else the first that is set."""
    value = number_of(raw)
    known = [(knob, found[0]) for knob in knobs if (found := record.value_of(knob)) is not None]
    fitting = next((knob for knob, held in known if held == value), None)
    name = fitting or (known[0][0] if known else knobs[0])
    yield Setting(text=text, line=line, name=name, value=value, slack=_slack(raw))


def _by_name(text: str, line: int, record: Record) -> Iterator[AnyClaim]:
    for pattern, knob in _NAMES:
        match = re.search(pattern, text)
        if match is not None and record.value_of(knob) is not None:
            yield Setting(text=text, line=line, name=knob, value=match["name"].lower())
    for pattern, knob in _NONE:
        if re.search(pattern, text, re.I):
            yield Setting(text=text, line=line, name=knob, value=0)
