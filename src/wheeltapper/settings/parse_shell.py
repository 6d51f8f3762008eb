"""Launch scripts and command lines: variables, and the options a training program was started with.

A value that comes from a variable is placed where the variable is set: that is the text to change.
Shell variables stand under `var`, the environment of a command under `env`, the launcher's own options
under `launcher`, so that none of them is mistaken for an option of the program.
"""

from __future__ import annotations

import ast
import re
from collections import deque
from dataclasses import dataclass, replace

from wheeltapper.settings.parse_argv import Field, Launch, launch_of
from wheeltapper.settings.position import EXPRESSION, Source, word_value
from wheeltapper.settings.shell_words import Command, Part, Tokenizer, Word
from wheeltapper.settings.tree import ConfigTree, Leaf

MAX_FIELDS = 50_000  # words after expansion; a script cannot make us hold more
MAX_EXPANSION = 16  # variables inside variables
MAX_TEXT = 10_000  # characters of a value after expansion; a longer one is left as it is written
MAX_TEXTS = 4_000_000  # characters of all of them: a variable of variables of variables grows without bound

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)\+?=")
_OPTION = re.compile(r"(-{1,2}[A-Za-z][\w.\-/]*|[+~]{0,2}[A-Za-z_][\w.\-/@]*)=")
_KEYWORDS = {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "time", "exec", "command"}
_OPENERS = {"if", "for", "while", "until", "case", "select"}
_CLOSERS = {"fi", "done", "esac"}
_DECLARES = {"export", "declare", "local", "readonly", "typeset", "set"}


@dataclass(slots=True)
class _Variable:
    word: Word  # parts hold the value only
    start: int  # of the value, quotes included
    end: int
    text: str
    resolved: bool
    note: str | None = None


def parse_shell(source: Source) -> ConfigTree:
    """A shell script: its variables, then its training command (others follow under `command`)."""
    return _Script(source).tree("shell")


def parse_argv(source: Source) -> ConfigTree:
    """One command line, as typed or as echoed into a log."""
    return _Script(source).tree("argv")


class _Script:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.text = source.text
        self.variables: dict[str, _Variable] = {}
        self.var_leaves: dict[str, Leaf] = {}
        self.launches: list[Launch] = []
        self.problems: list[str] = []
        self.depth = 0
        self.fields = 0
        self.expanded = 0

    def tree(self, format_: str) -> ConfigTree:
        for command in Tokenizer(self.text).commands():
            self._command(command, anything=format_ == "argv")
        leaves = list(self.var_leaves.values())
        ranked = sorted(self.launches, key=lambda launch: -launch.score)
        for index, launch in enumerate(ranked):
            if index == 0:
                leaves += launch.leaves
                self.problems += launch.problems
            else:
                leaves += [replace(leaf, path=("command", index, *leaf.path)) for leaf in launch.leaves]
        kind = "command" if self.launches else None
        return ConfigTree(self.source.file, format_, tuple(leaves), self.text, tuple(self.problems), kind)

    def _command(self, command: Command, *, anything: bool) -> None:
        words = deque(command.words)
        while words and words[0].text in _KEYWORDS | _OPENERS | _CLOSERS:
            head = words.popleft().text
            self.depth += (head in _OPENERS) - (head in _CLOSERS)
            if head in ("for", "select") and words:
                self._unknown(words[0].text, "a loop variable")
                return
            if head == "case":
                return
        self.depth = max(self.depth, 0)
        if command.broken_continuation is not None:
            spot = self.source.spot(command.broken_continuation)
            self.problems.append(f"{spot}: blanks after the backslash: the next line is not part of this command")
        if words and words[0].text in _DECLARES:
            words.popleft()
            words = deque(word for word in words if not word.text.startswith("-"))
        before = len(words)
        assigned = []
        while words and _ASSIGNMENT.match(words[0].text):
            assigned.append(words.popleft())
        if not words:
            for word in assigned:
                self._assign(word)
            return
        if before == len(words) or assigned:
            fields = [field for word in words for field in self._expand(word, 0)]
            launch = launch_of(self.source, fields, anything=anything)
            if launch is not None:
                launch.leaves[:0] = [self._environment(word) for word in assigned]
                self.launches.append(launch)

    def _environment(self, word: Word) -> Leaf:
        match = _ASSIGNMENT.match(word.text)
        name = match.group(1) if match else word.text
        value = _tail(word, len(name) + 1)
        text, resolved = self._text(value, 0)
        note = None if resolved else EXPRESSION
        return self.source.leaf(("env", name), text, value.start, value.end, note)

    def _unknown(self, name: str, why: str) -> None:
        self.variables[name] = _Variable(Word(0, 0, ()), 0, 0, f"${name}", False, why)

    def _assign(self, word: Word) -> None:
        match = _ASSIGNMENT.match(word.text)
        if match is None:
            return
        name = match.group(1)
        value = _tail(word, match.end())
        text, resolved = self._text(value, 0)
        note = "set under a condition" if self.depth else None
        before = self.variables.get(name)
        if self.text[word.start : word.end].startswith(f"{name}+=") and before is not None:
            text, resolved, note = f"{before.text}{text}"[:MAX_TEXT], False, "appended to"
        self.variables[name] = _Variable(value, value.start, value.end, text, resolved, note)
        leaf_note = note if resolved else f"{EXPRESSION}; {note}" if note else EXPRESSION
        from_default = value.parts[0] if len(value.parts) == 1 and value.parts[0].default else None
        start, end = from_default.default if from_default and from_default.default else _inner(value)
        shown: object = word_value(text)
        if value.array is not None:
            shown, start, end = text, value.start, value.end
        self.var_leaves[name] = self.source.leaf(("var", name), shown, start, end, leaf_note)

    def _text(self, word: Word, depth: int) -> tuple[str, bool]:
        """The text of a word after expansion, and whether all of it is known."""
        if word.array is not None:
            return self._joined([self._text(item, depth + 1) for item in word.array[:1000]], " ")
        return self._joined([self._part(part, depth) for part in word.parts], "")

    def _joined(self, pieces: list[tuple[str, bool]], between: str) -> tuple[str, bool]:
        size = sum(len(text) for text, _ in pieces)
        self.expanded += size
        if size > MAX_TEXT or self.expanded > MAX_TEXTS:
            return between.join(text[:100] for text, _ in pieces[:20]), False
        return between.join(text for text, _ in pieces), all(known for _, known in pieces)

    def _part(self, part: Part, depth: int) -> tuple[str, bool]:
        if part.kind == "text":
            return part.text, True
        if part.kind == "variable" and depth < MAX_EXPANSION:
            variable = self.variables.get(part.text)
            if variable is not None and (variable.resolved or part.default is None):
                return variable.text, variable.resolved
            if part.default is not None:
                words = Tokenizer(self.text, *part.default, flat=True).commands()
                return self._joined([self._text(word, depth + 1) for command in words for word in command.words], " ")
        if part.kind == "arithmetic":
            value = self._arithmetic(part.text)
            if value is not None:
                return str(value), True
        return self.text[part.start : part.end], False

    def _arithmetic(self, text: str) -> int | None:
        def known(match: re.Match[str]) -> str:
            variable = self.variables.get(match.group(1))
            return variable.text if variable and variable.resolved else "?"

        expression = re.sub(r"\$?\{?([A-Za-z_]\w*)\}?", known, text).strip()
        if len(expression) > 200 or not re.fullmatch(r"[\d\s+\-*/%()]+", expression) or "**" in expression:
            return None
        try:
            return _integer(ast.parse(expression, mode="eval").body)
        except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
            return None

    def _expand(self, word: Word, depth: int) -> list[Field]:
        """The arguments a word becomes. One that is a variable alone stands where the variable is set."""
        self.fields += 1
        if self.fields > MAX_FIELDS:
            return []
        option = _OPTION.match(word.text)
        if option and word.parts and word.parts[0].kind == "text" and len(word.parts[0].text) >= option.end():
            key = option.group(1)
            rest = _tail(word, option.end())
            field = self._single(rest, depth)
            return [replace(field, key=key, key_start=word.start)]
        if len(word.parts) == 1 and word.parts[0].kind == "variable" and depth < MAX_EXPANSION:
            part = word.parts[0]
            if part.text in ("@", "*"):  # what the script itself is given: not known, and no option's value
                return []
            variable = self.variables.get(part.text)
            if variable is not None and (part.all_items or not part.quoted):
                if variable.word.array is not None:
                    return [field for item in variable.word.array for field in self._expand(item, depth + 1)]
                start, end = _inner(variable.word)
                if end > start and re.search(r"\s", self.text[start:end]):
                    commands = Tokenizer(self.text, start, end, flat=True).commands()
                    words = [inner for command in commands for inner in command.words]
                    return [field for inner in words for field in self._expand(inner, depth + 1)]
                if variable.resolved and not variable.text:
                    return []
        return [self._single(word, depth)]

    def _single(self, word: Word, depth: int) -> Field:
        text, resolved = self._text(word, depth)
        start, end = _inner(word)
        note = None if resolved else EXPRESSION
        if len(word.parts) == 1 and word.parts[0].kind == "variable":
            part = word.parts[0]
            variable = self.variables.get(part.text)
            if variable is not None and variable.end > variable.start:
                start, end = _inner(variable.word)
                inner = variable.word.parts[0] if len(variable.word.parts) == 1 else None
                if inner is not None and inner.default is not None:
                    start, end = inner.default
                why = f"; {variable.note}" if variable.note else ""
                told = f"the value of ${part.text}, used on line {self.source.line(word.start)}{why}"
                note = told if resolved else f"{EXPRESSION}; {told}"
            elif part.default is not None and variable is None:
                start, end = part.default
                note = note or f"the default of ${part.text}"
            elif variable is None:
                note = f"{EXPRESSION}; ${part.text} is not set in this file"
            elif variable.note:
                note = f"{EXPRESSION}; {variable.note}"
        return Field(text, start, end, note)


def _integer(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.UAdd)):
        value = _integer(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp):
        left, right = _integer(node.left), _integer(node.right)
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)  # the shell rounds to zero
        if isinstance(node.op, ast.Div):
            return quotient
        if isinstance(node.op, ast.Mod):
            return left - right * quotient
    raise ValueError("not integer arithmetic")


def _tail(word: Word, skip: int) -> Word:
    """The word without its first `skip` characters, all of which lie in its first, unquoted part."""
    first = word.parts[0] if word.parts else None
    if first is None:
        return word
    start = first.start + skip
    parts = list(word.parts[1:])
    if len(first.text) > skip:
        parts.insert(0, replace(first, text=first.text[skip:], start=start))
    return Word(min(start, word.end), word.end, tuple(parts), word.array)


def _inner(word: Word) -> tuple[int, int]:
    """The text of a word inside its quotes, when one pair of quotes holds all of it."""
    if word.array is None and word.parts and all(part.quoted for part in word.parts):
        return word.parts[0].start, word.parts[-1].end
    return word.start, word.end
