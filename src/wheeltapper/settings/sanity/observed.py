"""Numbers that nobody gives to a key: held against what public configurations have under the same words.

observed.json was counted by scripts/observe_settings.py. A value speaks only when it lies an order of magnitude and more outside
everything that was seen; a key that few repositories know says nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from wheeltapper.settings.sanity.sheet import Doubt, Setting, Sheet
from wheeltapper.settings.words import word_set

HERE = Path(__file__).with_name("observed.json")
SHORTEST = 7  # letters of a key that can be misspelt
FAR = 25.0  # times beyond the largest or below the smallest
# Numbers that name or count something of one's own.
_OWN = word_set("""seed port id ids index idx rank gpu gpus device node nodes year version date time timeout timestamp hash commit address worker n_worker
    offset bytes memory mem mb gb class classes label labels sample samples vocab token tokens num_samples count user item rows row port pid uid job
    lr eps epsilon every interval temperature margin smooth max_size cache buffer threads cpu freq log print vis display save width height x y z position line column size_gb""")


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen under one key."""

    files: int
    repositories: int
    least: float
    most: float
    zero: float
    negative: float
    broken: float


def name_of(setting: Setting) -> str:
    """The words of a key; with its section where the key alone says too little. Empty: nothing to compare."""
    words = [word for word in setting.words if not word.isdigit() or len(setting.words) > 1]
    if not words or set(words) & _OWN or setting.own & _OWN:
        return ""
    name = "_".join(words)
    if len(words) > 1 or len(name) > 6:
        return name
    if len(setting.path) == 1:
        return ""  # alpha, beta, k: a letter of any formula
    above = next((part for part in reversed(setting.path[:-1]) if not part.isdigit() and len(part) > 2), "")
    return f"{above.lower()}.{name}" if above else name


@cache
def observed() -> dict[str, Seen]:
    """The table."""
    return {key: Seen(*row) for key, row in _file()["numbers"].items()}


@cache
def known_keys() -> frozenset[str]:
    """Keys that several repositories have."""
    return frozenset(_file()["keys"].split())


@cache
def known_words() -> frozenset[str]:
    """Words of keys that several repositories have: what is a word of its own is no slip."""
    return frozenset(_file()["words"].split())


@cache
def _file() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(HERE.read_text()) if HERE.exists() else {"numbers": {}, "keys": "", "words": ""}
    return found


def never_seen(sheet: Sheet) -> Iterator[Doubt]:
    """Numbers far outside everything that public configurations have under this key."""
    table = observed()
    for setting in sheet.settings:
        seen = table.get(name_of(setting))
        number = setting.number
        if seen is None or number is None or isinstance(setting.value, bool) or not math.isfinite(number):
            continue
        told = _told(setting, number, seen)
        if told:
            yield Doubt("setting-beyond-practice", f"`{setting.name}` is {number:g}; {told} ({seen.files} public configurations)", (setting,), "range")


def _told(setting: Setting, number: float, seen: Seen) -> str:
    sure = seen.files >= 25 and seen.repositories >= 5
    if number < 0:
        return f"it is never negative, {seen.least:g} to {seen.most:g} is usual" if sure and seen.negative == 0 and number != -1 else ""
    if number == 0 or seen.most <= 0:
        return ""
    if seen.files < 12:
        return ""
    if seen.most <= 1 and seen.negative == 0 and sure and seen.broken > 0.2 and number > 1.5 and not setting.own & {"decay"}:
        return f"it is a share, at most {seen.most:g} was seen"
    if number > FAR * seen.most:
        return f"at most {seen.most:g} was seen"
    if number < seen.least / FAR and seen.broken > 0 and not (seen.zero > 0.2 and number < 1e-3):
        return f"at least {seen.least:g} was seen"
    return ""


def misspelt(sheet: Sheet) -> Iterator[Doubt]:
    """A key that nobody has, one letter away from one that many have."""
    present = {s.key for s in sheet.settings}
    for setting in sheet.settings:
        key = setting.key
        if len(key) < SHORTEST or key in known_keys() or not key.replace("_", "").isalpha() or setting.meaning is not None:
            continue
        unknown = [word for word in key.split("_") if len(word) >= SHORTEST - 2 and word not in known_words()]
        meant = _one_slip(key) if unknown else None
        if meant is not None and meant not in present:
            yield Doubt("unknown-config-key", f"nothing is known to read `{setting.name}`: `{meant}` is meant", (setting,), "range")


@cache
def _one_slip(key: str) -> str | None:
    near = (known for known in _by_length().get(len(key), ()) + _by_length().get(len(key) - 1, ()) + _by_length().get(len(key) + 1, ()))
    return next((known for known in near if _slip(key, known)), None)


@cache
def _by_length() -> dict[int, tuple[str, ...]]:
    out: dict[int, tuple[str, ...]] = {}
    for known in sorted(known_keys()):
        if len(known) >= SHORTEST and known.replace("_", "").isalpha():
            out[len(known)] = (*out.get(len(known), ()), known)
    return out


def _slip(a: str, b: str) -> bool:
    """One letter more, less or other, or two swapped; not a plural, and not in the first letter."""
    if a[0] != b[0] or a.rstrip("s") == b.rstrip("s") or a.replace("_", "") == b.replace("_", ""):
        return False
    if len(a) == len(b):
        differ = [i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y]
        if len(differ) == 2 and differ[1] == differ[0] + 1:
            return a[differ[0]] == b[differ[1]] and a[differ[1]] == b[differ[0]]
        return len(differ) == 1 and "_" not in (a[differ[0]], b[differ[0]]) and _inside(a, differ[0])
    short, long = sorted((a, b), key=len)
    at = next((i for i, (x, y) in enumerate(zip(short, long, strict=False)) if x != y), len(short))
    return short[at:] == long[at + 1 :] and long[at] != "_" and _inside(long, at)


def _inside(name: str, at: int) -> bool:
    """Within a word of four letters at least: `lr_d` and `lr_g`, `in_ch` and `in_c` are no slips."""
    start = name.rfind("_", 0, at) + 1
    end = name.find("_", at)
    return (len(name) if end < 0 else end) - start >= 5 and at > start


CHECKS = (never_seen, misspelt)
