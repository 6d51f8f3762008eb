"""An option added to the command of a launch script, in the manner of its other options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from wheeltapper.settings.keys import NewKey
from wheeltapper.settings.shell_words import Command, Tokenizer, Word
from wheeltapper.settings.spell import spell
from wheeltapper.settings.splice import Splice
from wheeltapper.settings.tree import ConfigTree

_OPTION = re.compile(r"--?[A-Za-z]")
_JOINED = re.compile(r"--?[A-Za-z][\w.\-/]*=")
_OVERRIDE = re.compile(r"\+{0,2}[A-Za-z_][\w.\-/@]*=")
_PASSED_ON = re.compile(r"[\"']?\$(?:[@*]|\{[@*]\})[\"']?\Z")
# Frameworks whose command line has one way only.
_DASHED = {"timm", "megatron"}
_EQUALS = {"nanogpt"}
_OVERRIDES = {"hydra", "ultralytics"}


def command_insertions(key: NewKey, value: Any, dialect: str) -> Iterator[Splice]:
    """The training command with one more option, before a `"$@"` that lets the caller override it."""
    tree = key.tree
    command = _training_command(tree)
    if command is None:
        return
    text = tree.text or ""
    words = [word for word in command.words if not _PASSED_ON.match(text[word.start : word.end])]
    option = _option(key, words, text, value, dialect)
    if option is None:
        return
    last = words[-1]
    before = text[: last.start]
    broken = re.search(r"\\(\r?\n)([ \t]*)\Z", before[: _line_lead(before)])
    lead = f" \\{broken.group(1)}{broken.group(2)}" if broken else " "
    yield Splice((key.path,), ((last.end, last.end, f"{lead}{option}"),))


def _line_lead(before: str) -> int:
    """Offset of the first word of the line that `before` ends in."""
    line = before.rfind("\n") + 1
    return line + len(before[line:]) - len(before[line:].lstrip())


def _training_command(tree: ConfigTree) -> Command | None:
    """The command that names the program of this tree; None where a variable holds it."""
    leaf = tree.leaf("script") or tree.leaf("module") or tree.leaf("program")
    if leaf is None or leaf.start is None:
        return None
    for command in Tokenizer(tree.text or "").commands():
        if any(word.start <= leaf.start < word.end for word in command.words):
            return command
    return None


def _option(key: NewKey, words: list[Word], text: str, value: Any, dialect: str) -> str | None:
    raws = [text[word.start : word.end] for word in words]
    flags = [raw for raw in raws if _OPTION.match(raw)]
    overrides = [raw for raw in raws[1:] if _OVERRIDE.match(raw)]
    name = ".".join(str(part) for part in key.path)
    if dialect in _OVERRIDES or (overrides and not flags and key.flag is None):
        return f"{name}={spell(value, None, 'shell')}"
    flag = key.flag or _flag(name, flags, dialect)
    if flag is None:
        return None
    on, _, off = flag.partition("/")
    if isinstance(value, bool):
        if key.flag is not None:
            return on if value else off or None
        return f"{flag}={value}"
    joined = dialect in _EQUALS or (flags and all(_JOINED.match(raw) for raw in flags))
    return f"{on}{'=' if joined else ' '}{spell(value, None, 'shell')}"


def _flag(name: str, flags: list[str], dialect: str) -> str | None:
    """`--warmup-epochs` or `--warmup_epochs`: as the framework, else as the other options are written."""
    if "_" not in name:
        return f"--{name}"
    dashed = sum("-" in flag.lstrip("-").split("=")[0] for flag in flags)
    under = sum("_" in flag.split("=")[0] for flag in flags)
    if dialect in _DASHED or (dashed and not under):
        return "--" + name.replace("_", "-")
    return f"--{name}"
