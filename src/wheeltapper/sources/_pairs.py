"""Loose `key: value`, `key=value` and `key value` pairs, for logs whose author invented the line."""

from __future__ import annotations

import re
from dataclasses import replace

from wheeltapper.sources._fields import field_of
from wheeltapper.sources._rows import Field, Role
from wheeltapper.sources._text import NUMBER
from wheeltapper.sources.record import Window

_UNIT = r"%|it/s|s/it|ms|sec|GB|MB|GiB|MiB|G|M|dB|tok/s|samples/s(?:ec)?|images/s|img/s|s|h|m|K"
_VALUE = rf"(?:tensor\()?(?P<value>{NUMBER})(?:\s?(?P<unit>{_UNIT}))?"
_END = r"(?=[\s,;|)\]}']|:\s*$|\.?\s*$|, )"
_NAME = r"[A-Za-z_][\w./@#-]*(?:\s?\([A-Za-z_]\w*\))?"
_MARKED = re.compile(rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)['\"]?\s*[:=]+\s*['\"\[(]?{_VALUE}{_END}")
_SPACED = re.compile(
    rf"(?<![\w./])(?P<name>{_NAME}(?: {_NAME}){{0,2}}?)(?: so far)?(?: (?:is|was))?\s+(?P<value>[-+]?(?:\d+\.\d+"
    rf"(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|(?i:nan|inf)\b))(?:\s?(?P<unit>{_UNIT}))?{_END}"
)
_TOTAL = re.compile(r"\s*(?:/|of|out of)\s*(?P<total>[\d,]*\d)")
_PLACE = re.compile(
    r"(?<![\w./])(?P<word>(?:global[ _]?)?step|iter(?:ation)?|iters|itr|it|num_updates"
    r"|update|epoch|ep|batch(?:_idx)?|minibatch)"
    r"['\"]?\s*(?:[:=#]\s*)?[\[(]?\s*(?P<value>[\d,]*\d(?:\.\d+)?)(?![\w.%])",
    re.IGNORECASE,
)
_EPOCHS = ("epoch", "ep")
_INNERS = ("batch", "minibatch")
_VERBS = ("is", "was", "of", "at")
_FILLER = ("at", "the", "and", "with", "for", "of", "in", "on", "to", "is", "after", "from", "current", "avg", "info")


def place_of(body: str, start: int = 0) -> list[Field]:
    """Epoch, step and batch numbers on a line with their totals. A batch is a place only inside an epoch."""
    found: dict[str, list[Field]] = {}
    for hit in _PLACE.finditer(body, start):
        word = hit["word"].lower()
        role: Role = "epoch" if word.startswith(_EPOCHS) else "inner" if word.startswith(_INNERS) else "step"
        if role in found:
            continue
        fields = [field_of(hit, "value", word, role)]
        total = _TOTAL.match(body, hit.end())
        if total and role != "epoch" and "." not in hit["value"]:
            fields.append(field_of(total, "total", word, "per_epoch" if role == "inner" else "total_steps"))
        elif total and role == "epoch":
            fields.append(field_of(total, "total", word, "total_epochs"))
        found[role] = fields
    if "epoch" in found and "step" in found and len(found["step"]) > 1 and "inner" not in found:
        # "Epoch [1/5], Step [100/600]": a step with a total inside an epoch counts batches of the epoch.
        place, length = found.pop("step")
        found["inner"] = [replace(place, role="inner"), replace(length, role="per_epoch")]
    if "epoch" not in found:
        found.pop("inner", None)
    return sorted((f for fields in found.values() for f in fields), key=lambda f: f.start)


def loose_pairs(body: str, start: int, taken: list[Field], *, spaced: bool = True) -> list[Field]:
    """Named numbers that are not places, with the split their name states."""
    used = [(f.start, f.end) for f in taken]
    out: list[Field] = []
    section: str | None = None
    patterns = (_MARKED, _SPACED) if spaced else (_MARKED,)
    for pattern in patterns:
        for hit in pattern.finditer(body, start):
            a, b = hit.span("value")
            name = _trim(hit["name"])
            if not name or any(x < b and a < y for x, y in used) or _PLACE.fullmatch(f"{name} 1"):
                continue
            used.append((a, b))
            split = split_of(name)
            # "Train: 41.43% (loss: 3.97)": what stands in parentheses belongs to the word before it.
            if split is None and body[: hit.start("name")].rstrip().endswith("("):
                split = section
            elif body[: hit.start("name")].rstrip()[-1:] != "(":
                section = split
            window: Window | None = "eval" if split in ("val", "test") else None
            out.append(field_of(hit, "value", name, unit=hit["unit"], split=split, window=window))
    return sorted(out, key=lambda f: f.start)


def split_of(name: str) -> str | None:
    """The split a name begins with, if it states one.

    >>> split_of("Val Acc"), split_of("train_loss"), split_of("value_loss"), split_of("validation")
    ('val', 'train', None, 'val')
    """
    found = re.match(r"(?i)(train|training|val|valid|validation|test|testing|eval|evaluation|dev)(?=[\W_]|$)", name)
    if found is None:
        return None
    word = found[1].lower()
    return "train" if word.startswith("train") else "test" if word.startswith("test") else "val"


def _trim(name: str) -> str:
    words = name.split(" ")
    while words and words[0].lower().strip("-") in _FILLER:
        words = words[1:]
    while len(words) > 1 and words[-1].lower() in _VERBS:  # "Loss is 0.3"
        words = words[:-1]
    return " ".join(words)
