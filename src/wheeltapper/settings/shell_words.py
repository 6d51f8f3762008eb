"""Shell text to commands and words that know their place. Only the part of the language launch scripts use.

Nothing is run: `$(...)`, loops and conditions stay unresolved, and say so.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

MAX_WORDS = 100_000

_NAME = re.compile(r"[A-Za-z_]\w*")
_BRACED = re.compile(r"([A-Za-z_]\w*|[0-9@*#?])(\[[@*\d]+\])?(:?[-=?+])?")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_BREAKS = " \t\r\n;&|()<>"
_LITERAL = re.compile(r"[^ \t\r\n;&|()<>\\'\"$`]+")
_INSIDE = {"'": re.compile(r"[^']+"), '"': re.compile(r'[^"\\$`]+')}


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a word: literal text, a variable, or something only a shell could compute."""

    kind: Literal["text", "variable", "arithmetic", "command"]
    text: str  # the literal text, the variable's name, the expression, or the command
    start: int
    end: int
    quoted: bool = False
    default: tuple[int, int] | None = None  # where the default of ${NAME:-default} stands
    all_items: bool = False  # ${NAME[@]}


@dataclass(frozen=True, slots=True)
class Word:
    start: int
    end: int
    parts: tuple[Part, ...]
    array: tuple[Word, ...] | None = None  # NAME=(a b c)

    @property
    def text(self) -> str:
        return "".join(p.text if p.kind == "text" else "$" for p in self.parts)


@dataclass(slots=True)
class Command:
    words: list[Word] = field(default_factory=list)
    broken_continuation: int | None = None  # offset of a backslash followed by blanks at a line's end


class Tokenizer:
    """Splits text[at:end] into commands. `flat`: a line break is only a blank (inside a split string)."""

    def __init__(self, text: str, at: int = 0, end: int | None = None, *, flat: bool = False) -> None:
        self.text = text
        self.at = at
        self.end = len(text) if end is None else end
        self.flat = flat
        self.count = 0

    def commands(self) -> list[Command]:
        out = [Command()]
        heredocs: list[str] = []
        while self.at < self.end and self.count < MAX_WORDS:
            char = self.text[self.at]
            if char in " \t\r" or (char == "\n" and self.flat):
                self.at += 1
            elif char == "\\" and self._line_continues(out[-1]):
                continue
            elif char == "#":
                self.at = self._line_end()
            elif char == "\n":
                self.at += 1
                out.append(Command())
                for name in heredocs:
                    self._skip_heredoc(name)
                heredocs.clear()
            elif char in "<>":
                self._redirection(heredocs)
            elif char in ";&|()":
                self.at += 1
                out.append(Command())
            else:
                word = self.word()
                self.count += 1
                if word.end == word.start:  # cannot happen; a guard against standing still
                    self.at += 1
                    continue
                descriptor = self.text[word.start : word.end].isdecimal() and self.at < self.end
                if descriptor and self.text[self.at] in "<>":  # 2>&1
                    continue
                out[-1].words.append(word)
        return [command for command in out if command.words]

    def _line_end(self) -> int:
        found = self.text.find("\n", self.at, self.end)
        return self.end if found < 0 else found

    def _line_continues(self, command: Command) -> bool:
        match = re.compile(r"\\\r?\n").match(self.text, self.at, self.end)
        if match:
            self.at = match.end()
            return True
        blanks = re.compile(r"\\[ \t]+(?=\r?\n|#|\Z)").match(self.text, self.at, self.end)
        if blanks:
            command.broken_continuation = self.at
            self.at = blanks.end()
            return True
        return False

    def _redirection(self, heredocs: list[str]) -> None:
        here = _HEREDOC.match(self.text, self.at, self.end)
        if here and not self.text.startswith("<<<", self.at):
            heredocs.append(here.group(2))
            self.at = here.end()
            return
        while self.at < self.end and self.text[self.at] in "<>&|":
            self.at += 1
        while self.at < self.end and self.text[self.at] in " \t":
            self.at += 1
        if self.at < self.end and self.text[self.at] not in _BREAKS:
            self.word()  # the file it goes to

    def _skip_heredoc(self, name: str) -> None:
        match = re.compile(rf"^[ \t]*{re.escape(name)}[ \t\r]*$", re.M).search(self.text, self.at, self.end)
        self.at = match.end() if match else self.end

    def word(self, *, in_array: bool = False) -> Word:
        """The word at the cursor. Arrays do not nest."""
        start = self.at
        parts: list[Part] = []
        literal: list[str] = []  # stretches, joined once: a word may be as long as the file
        literal_start = self.at

        def flush() -> None:
            if literal:
                parts.append(Part("text", "".join(literal), literal_start, self.at))
            literal.clear()

        while self.at < self.end:
            char = self.text[self.at]
            if char in _BREAKS:
                if char == "(" and literal and literal[-1].endswith("=") and not parts and not in_array:
                    flush()
                    return self._array(start, parts)
                break
            if char == "\\":
                if re.compile(r"\\\r?\n").match(self.text, self.at, self.end):
                    break
                if not literal:
                    literal_start = self.at
                literal.append(self.text[self.at + 1 : min(self.at + 2, self.end)])
                self.at = min(self.at + 2, self.end)
            elif char in "'\"":
                flush()
                self._quoted(char, parts)
                literal_start = self.at
            elif char in "$`":
                flush()
                parts.append(self._expansion(quoted=False))
                literal_start = self.at
            else:
                if not literal:
                    literal_start = self.at
                run = _LITERAL.match(self.text, self.at, self.end)
                assert run is not None  # every other character was looked at above
                literal.append(run.group())
                self.at = run.end()
        flush()
        return Word(start, self.at, tuple(parts))

    def _array(self, start: int, parts: list[Part]) -> Word:
        self.at += 1
        items: list[Word] = []
        while self.at < self.end and self.text[self.at] != ")" and self.count < MAX_WORDS:
            char = self.text[self.at]
            if char == "#":
                self.at = self._line_end()
            elif char in _BREAKS or (char == "\\" and self.text[self.at + 1 : self.at + 2] in "\r\n"):
                self.at += 1
            else:
                self.count += 1
                items.append(self.word(in_array=True))
        self.at = min(self.at + 1, self.end)
        return Word(start, self.at, tuple(parts), tuple(items))

    def _quoted(self, quote: str, parts: list[Part]) -> None:
        self.at += 1
        start = self.at
        text: list[str] = []
        before = len(parts)
        while self.at < self.end and self.text[self.at] != quote:
            char = self.text[self.at]
            if quote == '"' and char == "\\" and self.at + 1 < self.end:
                following = self.text[self.at + 1]
                text.append("" if following == "\n" else following if following in '"\\$`' else "\\" + following)
                self.at += 2
            elif quote == '"' and char in "$`":
                if text:
                    parts.append(Part("text", "".join(text), start, self.at, quoted=True))
                parts.append(self._expansion(quoted=True))
                start, text = self.at, []
            elif run := _INSIDE[quote].match(self.text, self.at, self.end):
                text.append(run.group())
                self.at = run.end()
            else:  # a backslash at the very end
                text.append(char)
                self.at += 1
        if text or len(parts) == before:
            parts.append(Part("text", "".join(text), start, self.at, quoted=True))
        self.at = min(self.at + 1, self.end)

    def _expansion(self, *, quoted: bool) -> Part:
        start = self.at
        if self.text[start] == "`":
            close = self.text.find("`", start + 1, self.end)
            self.at = self.end if close < 0 else close + 1
            return Part("command", self.text[start + 1 : self.at - 1], start, self.at, quoted)
        if self.text.startswith("$((", start):
            close = self.text.find("))", start, self.end)
            self.at = self.end if close < 0 else close + 2
            return Part("arithmetic", self.text[start + 3 : self.at - 2], start, self.at, quoted)
        if self.text.startswith("$(", start):
            self.at = self._matching(start + 1, "(", ")")
            return Part("command", self.text[start + 2 : self.at - 1], start, self.at, quoted)
        if self.text.startswith("${", start):
            self.at = self._matching(start + 1, "{", "}")
            inner_end = self.at - 1
            match = _BRACED.match(self.text, start + 2, inner_end)
            if not match:
                return Part("command", self.text[start : self.at], start, self.at, quoted)
            has_default = match.group(3) in (":-", "-", ":=", "=")
            if not has_default and match.end() != inner_end:  # ${NAME%.py} and its kin
                return Part("command", self.text[start : self.at], start, self.at, quoted)
            default = (match.end(), inner_end) if has_default else None
            every = bool(match.group(2)) and match.group(2)[1] in "@*"
            return Part("variable", match.group(1), start, self.at, quoted, default, every)
        name = _NAME.match(self.text, start + 1, self.end) or re.compile(r"[0-9@*#?]").match(
            self.text, start + 1, self.end
        )
        self.at = name.end() if name else start + 1
        if name is None:
            return Part("text", "$", start, self.at, quoted)
        return Part("variable", name.group(), start, self.at, quoted)

    def _matching(self, start: int, open_: str, close: str) -> int:
        depth = 0
        for at in range(start, self.end):
            depth += (self.text[at] == open_) - (self.text[at] == close)
            if depth == 0:
                return at + 1
        return self.end
