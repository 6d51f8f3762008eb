"""Words and numbers as a report writes them. All that came from a run passes `clean` before it is shown.

A log may hold terminal escapes, bidirectional overrides or NULs; none of them may reach a terminal, a page
or a pasted issue (design/004-untrusted-input.md).
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Any

# An escape sequence goes as a whole, so that "\x1b[31mred" reads "red" and not "[31mred".
_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
# Zero-width and direction characters can make a line read other than it is.
_HIDDEN = re.compile("[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]")
_SPACES = re.compile(r"\s+")


def clean(text: Any, limit: int = 400) -> str:
    """One line, printable, at most `limit` characters.

    >>> clean("a\\x1b[31m b\\r\\n\\x00c \\u202eevil")
    'a b c evil'
    """
    line = _SPACES.sub(" ", _HIDDEN.sub("", _ANSI.sub("", str(text)[: 8 * limit])))
    line = "".join(c for c in line if c == " " or unicodedata.category(c)[0] != "C").strip()
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def clean_lines(text: Any, limit: int = 2000) -> str:
    """Like `clean`, with line breaks kept: for tracebacks and messages."""
    lines = [clean(line, 300) for line in str(text)[: 8 * limit].splitlines()]
    return "\n".join(lines)[:limit].strip()


def num(value: float | None) -> str:
    """Four significant digits; whole numbers whole, and what is not one is not shown as 1: a decay of 0.99999 is none of 1.

    >>> [num(v) for v in (0.0001234567, 12345.0, 1.8e27, -0.5, float("nan"), float("-inf"), None)]
    ['0.0001235', '12,345', '1.8e27', '-0.5', 'NaN', '-inf', '–']
    >>> num(0.99999), num(0.12345678)
    ('0.99999', '0.1235')
    """
    if value is None:
        return "–"
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value == int(value) and abs(value) < 1e9:
        return f"{int(value):,}"
    if 1e4 <= abs(value) < 1e9:
        return f"{value:,.0f}"
    if 1e-5 <= abs(value) < 1e4:
        return f"{value:.7g}" if 0.9995 <= abs(value) < 1 else f"{value:.4g}"
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def position(at: float | None, clock: str | None) -> str:
    """A place on a clock, in words.

    >>> position(12000, "step"), position(3.5, "epoch"), position(7, None)
    ('step 12,000', 'epoch 3.5', '7')
    """
    if at is None:
        return "?"
    if clock == "second":
        return f"{num(at)} s"
    return f"{clock.replace('_', '-')} {num(at)}" if clock else num(at)


def span(onset: float | None, end: float | None, clock: str | None) -> str:
    """An interval on a clock; an open end is said in words."""
    if onset is None:
        return ""
    if end is None:
        return f"from {position(onset, clock)} to the end"
    if end == onset:
        return f"at {position(onset, clock)}"
    return f"{position(onset, clock)} to {num(end)}"


def percent(share: float) -> str:
    """A probability; never 0 % or 100 %, which it is not.

    >>> percent(0.834), percent(0.003), percent(0.9999)
    ('83 %', '< 1 %', '> 99 %')
    """
    if math.isnan(share):
        return "?"
    if share < 0.01:
        return "< 1 %"
    return "> 99 %" if share > 0.99 else f"{100 * share:.0f} %"


def bits(weight: float) -> str:
    return f"{weight:+.1f}".replace("-", "−")


def plural(count: int, one: str, many: str | None = None) -> str:
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def duration(seconds: float) -> str:
    """
    >>> [duration(s) for s in (0.25, 12, 90, 3700, 200_000)]
    ['0.2 s', '12 s', '1 min 30 s', '1 h 1 min', '2 d 7 h']
    """
    if 0 < seconds < 1:
        return f"{seconds:.1f} s"
    s = round(seconds)
    if s < 60:
        return f"{s} s"
    if s < 3600:
        return f"{s // 60} min {s % 60} s" if s < 600 and s % 60 else f"{s // 60} min"
    if s < 86400:
        return f"{s // 3600} h {s % 3600 // 60} min"
    return f"{s // 86400} d {s % 86400 // 3600} h"


def size(nbytes: int | None) -> str:
    """A file size.

    >>> size(1536), size(None)
    ('1.5 kB', '–')
    """
    if nbytes is None:
        return "–"
    value = float(nbytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1024 or unit == "GB":
            break
        value /= 1024
    return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
