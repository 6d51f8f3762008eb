"""From which probability on a run is called ill or sound: the options of `diagnose`, and pyproject.toml."""

from __future__ import annotations

import argparse
import math
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wheeltapper.errors import InputError

if TYPE_CHECKING:
    from wheeltapper.judge.model import Lines

PROJECT = Path("pyproject.toml")  # of the current folder
MOST = 1 << 20  # bytes of it
KEYS = ("ill_line", "sound_line")


def add_line_options(parser: argparse._ActionsContainer) -> None:
    parser.add_argument(
        "--ill-line",
        metavar="P",
        help="call a run ill from this probability on (default: 0.9, or [tool.wheeltapper] ill_line)",
    )
    parser.add_argument(
        "--sound-line",
        metavar="P",
        help="call it sound only up to this one (default: 0.07, or [tool.wheeltapper] sound_line)",
    )


def lines_of(args: argparse.Namespace, project: Path = PROJECT) -> Lines:
    """The lines that were asked for: an option goes before pyproject.toml, which goes before the default."""
    from wheeltapper.judge.model import Lines

    told = _told(project)
    values, sources = dict(zip(KEYS, (Lines().ill, Lines().sound), strict=True)), dict.fromkeys(KEYS, "the default")
    for key in KEYS:
        option = getattr(args, key)
        if option is not None:
            sources[key] = "--" + key.replace("_", "-")
            values[key] = _probability(option, sources[key])
        elif key in told:
            sources[key] = f"{key} in {project}"
            values[key] = _probability(told[key], sources[key])
    ill, sound = (values[key] for key in KEYS)
    if sound >= ill:
        raise InputError(
            f"the sound line ({sound:g}, {sources['sound_line']}) does not lie below the ill line ({ill:g}, {sources['ill_line']}).",
            do="A run in between is called neither: leave room, as in --ill-line 0.9 --sound-line 0.07.",
        )
    return Lines(ill, sound)


def _told(project: Path) -> dict[str, Any]:
    """[tool.wheeltapper] of a pyproject.toml; nothing where there is none."""
    try:
        with project.open("rb") as file:
            data = file.read(MOST + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InputError(
            f"{project} cannot be read ({error.strerror}).", do="Mend it, or call from another folder."
        ) from error
    if b"wheeltapper" not in data:
        return {}  # somebody else's file: whatever is wrong with it is not ours to tell
    if len(data) > MOST:
        raise InputError(f"{project} is over {MOST >> 20} MiB.", do="Call from another folder.")
    try:
        tool = tomllib.loads(data.decode("utf-8")).get("tool", {})
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8
        raise InputError(f"{project} is no TOML file ({error}).", do="Mend it, or call from another folder.") from error
    ours = tool.get("wheeltapper", {}) if isinstance(tool, dict) else {}
    if not isinstance(ours, dict):
        raise InputError(
            f"wheeltapper in {project} is no table.", do="Write [tool.wheeltapper] and ill_line = 0.9 below it."
        )
    unknown = sorted(set(ours) - set(KEYS))
    if unknown:
        raise InputError(
            f"[tool.wheeltapper] in {project} has no setting {', '.join(unknown)}.",
            do=f"It may hold: {', '.join(KEYS)}.",
        )
    return ours


def _probability(value: object, source: str) -> float:
    """A probability strictly between 0 and 1: at either end a verdict could never be told, or always would be."""
    try:
        number = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else math.nan
    except ValueError:
        number = math.nan
    if not 0 < number < 1:
        raise InputError(
            f"{source} is {value!r}, and must be a probability between 0 and 1.", do="Give a number such as 0.9."
        )
    return number
