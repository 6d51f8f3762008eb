"""Text as runs really leave it: any encoding, ANSI codes, tqdm's lone carriage returns, logging prefixes.

Lines and their numbers are made in _lines.py.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache

from wheeltapper.reading import Head
from wheeltapper.reading._english import Manner

HEAD_LINE = 2000  # characters of a line that sniffing sees: patterns then stay quick on any input

ANSI = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROL = (*range(8), *range(14, 19), *range(20, 26), 28, 29)  # not backspace: Keras draws bars with it
_BACKSPACES = re.compile("\x08+")
# UTF-8 read as cp1252 and written again: "â€™", "Ã©", "ðŸš€".
MOJIBAKE = re.compile("â€|â–|Ã[\xa0-\xbf]|ðŸ|Ä±ÅŸ")

NUMBER = (
    r"[-+]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?(?![\d,])|\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
    r"|1\.\#(?:QNAN|SNAN|IND|INF)\d*|(?i:nan(?:\(\w+\))?|inf(?:inity)?)(?=ms\b|[^A-Za-z_]|\Z))"
)
_NUMBER = re.compile(NUMBER)
_MEASURE = re.compile(rf"\s*({NUMBER})\s*([%A-Za-zµ/]*(?:/[A-Za-z]+)?)\s*\Z")


def _value(text: str) -> float:
    if "," in text:
        text = text.replace(",", "")
    try:
        return float(text)
    except ValueError:  # what C prints on Windows, and "-nan(ind)"
        low = text.lower()
        if "inf" in low:
            return float("-inf") if low.startswith("-") else float("inf")
        return float("nan")


def measure(text: str) -> tuple[float, str] | None:
    """A number and the unit written after it; None if the text is not one number.

    >>> measure("1.71 GB"), measure("41.43%"), measure("26.1 it/s"), measure("1,000"), measure("N/A")
    ((1.71, 'GB'), (41.43, '%'), (26.1, 'it/s'), (1000.0, ''), None)
    """
    found = _MEASURE.match(text)
    return (_value(found[1]), found[2]) if found else None


def number(text: str) -> float | None:
    """The number a cell or a value holds, as written (41.43% is 41.43); None if it is not a number.

    >>> number("-inf"), number("1.2e-3"), number("1.71 GB"), number("low")
    (-inf, 0.0012, 1.71, None)
    """
    try:
        return float(text) if "_" not in text else None
    except ValueError:
        found = measure(text)
        return found[0] if found else None


# ---------------------------------------------------------------- decoding


def encoding_of(data: bytes) -> str:
    """utf-8, utf-16-le, utf-16-be, or "" for binary. PowerShell's `>` writes UTF-16."""
    if data.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if data.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    head = data[:4096]
    if head.startswith(bytes(16)):  # a log cut or rotated while it was written begins with a hole
        head = data.lstrip(b"\x00")[:4096]
        if not head:
            return ""
    if b"\x00" in head:
        even, odd = head[::2].count(0), head[1::2].count(0)
        if odd > 0.7 * len(head[1::2]) and even == 0:
            return "utf-16-le"
        if even > 0.7 * len(head[::2]) and odd == 0:
            return "utf-16-be"
    control = sum(head.count(byte) for byte in _CONTROL)
    return "" if control > 0.05 * len(head) else "utf-8"


def from_utf8(raw: bytes) -> tuple[str, int]:
    """The text, and how many lines were not UTF-8. A line without any valid sequence is Latin-1."""
    try:
        return raw.decode("utf-8"), 0
    except UnicodeDecodeError:
        pass
    bad = 0
    out = []
    for line in raw.split(b"\n"):
        try:
            out.append(line.decode("utf-8"))
        except UnicodeDecodeError:
            bad += 1
            text = line.decode("utf-8", errors="replace")
            foreign = {c for c in text if c > "\x7f"}
            out.append(line.decode("latin-1") if foreign == {"\ufffd"} else text)
    return "\n".join(out), bad


def clean(text: str) -> str:
    """Without ANSI codes and NULs; backspaces as carriage returns; CRLF as LF. No newline is lost."""
    if "\x1b" in text:
        text = ANSI.sub("", text)
    if "\x08" in text:
        text = _BACKSPACES.sub("\r", text)
    if "\x00" in text:
        text = text.replace("\x00", "")
    if "\r" in text:
        text = text.replace("\r\r\n", "\n").replace("\r\n", "\n")
    return text


_BOX = str.maketrans("│┃║─━═┄┈╌┌┐└┘├┤┬┴┼┏┓┗┛┣┫┳┻╋┡┩╇╈╔╗╚╝╠╣╦╩╬╭╮╰╯╞╡╪╴╶╸╺", "|||" + "-" * 6 + "+" * 42)


def drawn(text: str) -> str:
    """The text with the lines of a drawn box as ASCII, sign for sign.

    >>> drawn("┃ epoch ┃"), drawn("├──┼──┤")
    ('| epoch |', '+--+--+')
    """
    return text if text.isascii() else text.translate(_BOX)


def decode(data: bytes) -> tuple[str, list[str]]:
    """The text of a small file, cleaned, and what had to be repaired. Lone carriage returns are kept.

    >>> decode(b"\\x1b[34mloss\\x1b[0m: 1\\r\\n")
    ('loss: 1\\n', [])
    """
    notes: list[str] = []
    encoding = encoding_of(data)
    if encoding.startswith("utf-16"):
        text = data.decode(encoding, errors="replace")
        notes.append("the file is UTF-16")
    elif not encoding:
        text = data.decode("latin-1")
        notes.append("the file looks binary")
    else:
        text, bad = from_utf8(data)
        if bad:
            notes.append(f"{bad} lines are not UTF-8; read as Latin-1")
    text = text.removeprefix("\ufeff")
    if "\x00" in text:
        notes.append("NUL bytes left out")
    if MOJIBAKE.search(text):
        notes.append("some text is double-encoded (mojibake); numbers are not touched by it")
    return clean(text), notes


@lru_cache(maxsize=4)
def head_text(head: Head) -> str:
    """The cleaned start of a file for sniffing: carriage returns as line ends, no blank lines; "" for binary."""
    if not encoding_of(head.data):
        return ""
    text = decode(head.data)[0].replace("\r", "\n")
    text = Manner(text).read(text)
    return "\n".join(line[:HEAD_LINE] for line in text.split("\n") if line and not line.isspace())


# ---------------------------------------------------------------- logging prefixes

_DATE = r"\d{4}[-/]\d\d[-/]\d\d[ T_-]\d\d:\d\d:\d\d(?:[.,:]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?"
_US_DATE = r"\d\d/\d\d(?:/\d{2,4})? \d\d:\d\d:\d\d(?:[.,]\d+)?"
_LEVEL = r"(?:DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL|TRACE|SUCCESS)"
_TOKEN = re.compile(
    r"[ \t]*(?:"
    r"\[default(?P<r1>\d+)\]:|\[(?i:rank)[ :]?(?P<r2>\d+)\]:?|\[\d+,(?P<r3>\d+)\]<std\w+>:"
    r"|\(\w+ pid=\d+(?:, ip=[\d.]+)?\)"
    rf"|\[?(?P<time>{_DATE}|{_US_DATE})(?:\s+(?P<name1>[\w.]+)\]:?|\])?"
    r"|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d\d? [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d"  # RecBole
    r"|\[\d\d:\d\d:\d\d\]|\d+:\d\d:\d\d(?= - )"
    r"|\d\d-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?(?= ?[-:] )"  # a year of two digits: BasicSR at first, KAIR
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w./-]+:\d+\]"  # glog and absl
    r"|\[[\w.-]+\](?= \d{4}-\d\d-\d\d )|\(\w+:\d+\)(?= [A-Z]+: )"  # ESPnet: the host, the place in the code
    r"|(?:\[ {0,30}[\w.]+\]|[\w.]+)\[line: ?\d+\]"
    rf"|:?(?:\[ {{0,9}})?(?P<level>{_LEVEL})\b\]?(?::(?P<name2>[\w.]+):)?:?"
    r"|[-|:](?=\s)|\|"
    r"|(?P<name3>(?!(?i:val|valid|validation|eval|evaluation|test|testing|dev|hold-?out|held-?out) [-|] (?i:ep)(?:och)?\b)[A-Za-z_][\w.]*(?::[\w<>]+:\d+)?)(?= [-|] | (?:INFO|WARNING|ERROR|DEBUG): )"
    r"|\[(?P<name4>[\w.]+:\d+)(?::\w+)?\]|\((?P<name5>[\w.]+)(?: \d+)?\):"
    r")"
)
_RANKS = ("r1", "r2", "r3")
_SRUN = re.compile(r" *(\d{1,5}): ?(?!\d)")


@dataclass(frozen=True, slots=True)
class Prefix:
    """What a logger wrote before the message. `end` is where the message starts."""

    end: int = 0
    time: tuple[int, int] | None = None  # the span of the time stamp
    level: str | None = None
    logger: str | None = None
    rank: int | None = None


NO_PREFIX = Prefix()


def prefix_of(line: str, *, numbered: bool = False) -> Prefix:
    """Time stamp, level, logger name and rank at the start of a line.

    `numbered`: every line begins with a task number ("3: "), as `srun -l` writes it. It must be told, for
    a bare number may as well be a step.

    >>> line = "2025-12-09 12:01:43,175 INFO: [epoch: 0]"
    >>> found = prefix_of(line); line[found.end :], found.level
    ('[epoch: 0]', 'INFO')
    >>> prefix_of("[default7]: iteration 1").rank
    7
    """
    end = 0
    time: tuple[int, int] | None = None
    level = logger = None
    rank: int | None = None
    if numbered and (task := _SRUN.match(line)):
        rank, end = int(task[1]), task.end()
    for _ in range(9):
        token = _TOKEN.match(line, end)
        if token is None:
            break
        if token.lastgroup is None and end == 0 and token[0].strip() in {"-", "|", ":"}:
            break  # a list item or a table, not a logger
        if token["name3"] or token["name4"] or token["name5"]:
            if time is None and level is None:
                break  # a word before a dash is only a logger's name after a time or a level
            logger = logger or token["name3"] or token["name4"] or token["name5"]
        if token["time"]:
            if time is not None:
                break
            time = token.span("time")
            logger = logger or token["name1"]
        elif token["level"]:
            if level is not None:
                break
            level = token["level"]
            logger = logger or token["name2"]
        for key in _RANKS:
            if token[key]:
                rank = int(token[key])
        end = token.end()
    if end == 0:
        return NO_PREFIX
    if line.startswith(" ", end):
        end += len(line) - end - len(line[end:].lstrip(" "))
    return Prefix(end, time, level, logger, rank)


def seconds(stamp: str) -> float | None:
    """A time stamp as seconds since 1970. Read as UTC: logs do not say their zone, and differences count.

    >>> seconds("2025-12-09 12:01:43,500") - seconds("2025-12-09T12:01:40")
    3.5
    """
    text = stamp.strip().replace("/", "-").replace(",", ".").replace("_", " ")
    if text[2:3] == "-":  # 09-02-20 13:55:22, or 08-21 10:01:02 without a year
        day, _, clock = text.partition(" ")
        parts = day.split("-")
        year = "1970" if len(parts) == 2 else parts[2] if len(parts[2]) == 4 else f"20{parts[2]}"
        text = f"{year}-{parts[0]}-{parts[1]} {clock}"
    if len(text) > 10 and text[10] == "-":
        text = text[:10] + " " + text[11:]
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
