"""How a value is written at a place in a shell command, so that it is one argument there and never code.

A file of a run may be named `$(reboot).yaml`. In the open it is quoted; inside quotes that hold nothing but a plain word
around it, the quotes are closed for it. Everywhere else (a text that a second shell will read, a here-document) no quoting
is sure to be right, and the command is refused.
"""

from __future__ import annotations

import re
import shlex

from wheeltapper.errors import InputError

_SAFE = re.compile(r"[\w@%+=:,./-]+", re.ASCII)  # what no shell reads as anything but itself, quoted or not
_PLAIN_AROUND = re.compile(r"[\w@%+=:,./ {}-]*", re.ASCII)
# What reads a text as shell once more.
_AGAIN = re.compile(r"(?:^|[\s;&|(])(?:eval|ssh|watch|xargs|parallel|(?:\S*/)?(?:ba|z|k|da|a)?sh\s+(?:-\w+\s+)*-\w*c)(?=\s|$)|<<|`")
_DO = "Write it outside of the quotes, as a word of its own: --config {config}"


def written_at(value: str, command: str, start: int, end: int) -> str:
    """`value` for the hole command[start:end].

    >>> command = 'python t.py -c "{config}"'
    >>> written_at("my run.yml", command, 16, 24)
    '"\\'my run.yml\\'"'
    """
    if "\0" in value or "\n" in value:
        raise InputError(f"the value {value!r} of {command[start:end]} has a line break in it.", do="Rename the file.")
    if _SAFE.fullmatch(value):
        return value
    again = _AGAIN.search(command)
    if again is not None:
        raise InputError(
            f"{command[start:end]} is {value!r}, and `{again[0].strip()}` in the command would read that as shell once more.",
            do="Put the command into a script of its own, or rename the file.",
        )
    quote, begun, ended = quotes_around(command, start, end)
    if not quote:
        return shlex.quote(value)
    around = command[begun:start] + command[end:ended]
    if not _PLAIN_AROUND.fullmatch(around) or " " in around:
        raise InputError(f"{command[start:end]} stands inside a quoted text, and its value is {value!r}.", do=_DO)
    return f"{quote}{shlex.quote(value)}{quote}"


def quotes_around(command: str, start: int, end: int) -> tuple[str, int, int]:
    """The quote that is open at `start` ('' if none), and where its content begins and ends."""
    quote, begun, at = "", 0, 0
    while at < start:
        char = command[at]
        if char == "\\" and quote != "'":
            at += 1
        elif not quote and char in "'\"":
            quote, begun = char, at + 1
        elif char == quote:
            quote = ""
        at += 1
    if not quote:
        return "", start, end
    ended = end
    while ended < len(command) and command[ended] != quote:
        ended += 2 if command[ended] == "\\" and quote == '"' else 1
    return quote, begun, min(ended, len(command))
