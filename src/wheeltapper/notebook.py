"""Wheeltapper in a notebook.

    %load_ext wheeltapper
    %wheeltapper runs/exp1             the diagnosis of every run there, as cards
    %wheeltapper sweep runs            any command, as on the command line

`to_dict`, `to_pandas` and `to_polars` take a run, a diagnosis, a fix, or a list of diagnoses (one row a run).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Any

from wheeltapper import api
from wheeltapper.cli.main import COMMANDS, main
from wheeltapper.errors import WheeltapperError
from wheeltapper.judge.model import Diagnosis
from wheeltapper.report.notebook import fleet_rows
from wheeltapper.shown import FACES, pandas_frame, polars_frame

__all__ = ["load", "to_dict", "to_pandas", "to_polars"]


def to_dict(shown: Any) -> dict[str, Any]:
    """All of it as plain data, as the JSON output has it."""
    return FACES[type(shown).__name__].as_dict(shown)


def to_pandas(shown: Any) -> Any:
    """A pandas DataFrame: the points of a run, the causes of a diagnosis, the edits of a fix; of many diagnoses a row each."""
    return pandas_frame(_rows(shown))


def to_polars(shown: Any) -> Any:
    """The same as a polars DataFrame."""
    return polars_frame(_rows(shown))


def _rows(shown: Any) -> list[dict[str, Any]]:
    if isinstance(shown, Iterable) and not isinstance(shown, str):
        return fleet_rows(shown)
    return FACES[type(shown).__name__].rows(shown)


def load(shell: Any) -> None:
    """Cards for diagnoses, and the magic."""
    html = shell.display_formatter.formatters["text/html"]
    html.for_type(Diagnosis, FACES["Diagnosis"].card)
    shell.register_magic_function(_magic, "line", "wheeltapper")


def _magic(line: str) -> Any:
    words = shlex.split(line)
    if not words:
        print("%wheeltapper PATH, or any command: %wheeltapper sweep runs")
        return None
    try:
        if words[0] not in COMMANDS:
            return Cards(d for path in words for d in api.diagnose(path))
        main(words)
    except WheeltapperError as error:
        print(f"wheeltapper: {error}")
    except SystemExit:  # words that the command does not know; it has said so
        pass
    return None


class Cards(list[Diagnosis]):
    """Diagnoses that a notebook shows as cards, one below the other."""

    def _repr_html_(self) -> str:
        return "".join(FACES["Diagnosis"].card(d) for d in self)
