"""A document cut into passages: sentences, items, table rows, and the lines of its blocks, each with its line number.

Write-ups are copied through many hands: text that was decoded wrongly (two bytes shown as two letters) is repaired, and
fences that never close or open inside one another do not lose what follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["heading", "prose", "code"]
MOST_LINES = 20_000
MOST_LINE = 1_000  # letters of a line: the patterns that follow are quadratic in it

_FENCE = re.compile(r"^\s*(```+|~~~+)\s*([\w+-]*)")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)]|>)\s+")
_HEADING = re.compile(r"^\s*#{1,6}\s+|^\s*\*\*[^*]+\*\*:?\s*$")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]{2,}")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`\"'*(\d])|(?<=;)\s+")
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|vs|approx|ca|cf|no|fig|eq)\.$", re.I)
_CODE_LANGUAGES = {"yaml", "yml", "json", "python", "py", "toml", "bash", "sh", "shell", "console", "diff", "ini"}


@dataclass(frozen=True, slots=True)
class Passage:
    """One sentence, item or line. `block` numbers the block of code it stands in."""

    line: int
    text: str
    kind: Kind = "prose"
    heading: str = ""  # the headings above it, joined
    block: int = -1
    language: str = ""
    before: str = ""  # the line of prose right above: what introduces a block or an item


def repaired(text: str) -> str:
    """UTF-8 that somebody read as a one-byte code, turned back.

    >>> repaired("8Ã— A100, loss 6.0 ‚Üí 0.06")
    '8× A100, loss 6.0 → 0.06'
    """
    return _NOT_ASCII.sub(_turned_back, text)


def _turned_back(match: re.Match[str]) -> str:
    for code in ("cp1252", "cp1254", "mac_roman", "latin-1"):
        try:
            found = match.group(0).encode(code).decode("utf-8")
        except UnicodeError:
            continue
        if len(found) < len(match.group(0)):
            return found
    return match.group(0)


def passages(text: str) -> list[Passage]:
    """The document in its own order."""
    lines = [line[:MOST_LINE] for line in repaired(text).splitlines()[:MOST_LINES]]
    out: list[Passage] = []
    state = _Reader()
    for number, line in enumerate(lines, 1):
        out += state.take(number, line)
    return out + state.flush()


class _Reader:
    """Where we are: inside a block or not, under which headings, in which paragraph."""

    def __init__(self) -> None:
        self.headings: list[str] = []
        self.language: str | None = None
        self.block = -1
        self.before = ""
        self.held: tuple[int, str] | None = None  # the paragraph being read

    def take(self, number: int, line: str) -> list[Passage]:
        fence = _FENCE.match(line)
        if fence is not None:
            return self._fence(fence.group(2).lower())
        if self.language is not None:
            if not line.strip():
                return []
            if re.match(r"^#{2,6}\s+\S", line) and self.language not in ("markdown", "md"):
                self.language = None  # a block that was never closed
                return self._heading(number, line)
            return [Passage(number, line, "code", self._above(), self.block, self.language, self.before)]
        if _HEADING.match(line):
            return self.flush() + self._heading(number, line)
        return self._prose(number, line)

    def _fence(self, language: str) -> list[Passage]:
        out = self.flush()
        if self.language is None or language in _CODE_LANGUAGES:
            self.block += 1
            self.language = language
        else:
            self.language = None
        return out

    def _heading(self, number: int, line: str) -> list[Passage]:
        level = len(line) - len(line.lstrip("#"))
        told = line.strip().strip("#").strip()
        self.headings = [*self.headings[: max(0, level - 1)], told] if level else [*self.headings[:3], told]
        self.before = told
        return [Passage(number, told, "heading", self._above())]

    def _prose(self, number: int, line: str) -> list[Passage]:
        if not line.strip() or set(line.strip()) <= set("-=|: *"):
            return self.flush()
        if self.held is not None and not self._goes_on(line):
            out = self.flush()
            self.held = (number, line)
            return out
        at, text = self.held or (number, "")
        self.held = (at, f"{text} {line.strip()}" if text else line)
        return []

    def _goes_on(self, line: str) -> bool:
        """A wrapped line: it begins small and the one before did not end."""
        assert self.held is not None
        first = line.strip()[:1]
        return (
            not _ITEM.match(line) and not re.search(r"[.!?:;]\W*$", self.held[1]) and (first.islower() or first == "(")
        )

    def flush(self) -> list[Passage]:
        if self.held is None:
            return []
        number, text = self.held
        self.held = None
        plain = _ITEM.sub("", text).strip()
        out = [Passage(number, part, "prose", self._above(), before=self.before) for part in _sentences(plain)]
        self.before = plain
        return out

    def _above(self) -> str:
        return " / ".join(self.headings)


def _sentences(text: str) -> list[str]:
    """
    >>> _sentences("It ends at 3.2. Then e.g. nothing; the rest is fine.")
    ['It ends at 3.2.', 'Then e.g. nothing;', 'the rest is fine.']
    """
    parts: list[str] = []
    for part in _SENTENCE.split(text):
        if parts and _ABBREVIATION.search(parts[-1]):
            parts[-1] += f" {part}"
        elif part.strip():
            parts.append(part.strip())
    return parts
