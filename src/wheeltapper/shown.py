"""How our objects look in a notebook: a short repr, a card, a dict, a table.

A class that inherits from Shown has them. What they say is written further right (report/notebook.py), where words and numbers
are put into shape; it is registered here when the api is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wheeltapper.errors import MissingExtra


@dataclass(frozen=True, slots=True)
class Face:
    """How objects of one class are shown."""

    line: Callable[[Any], str]
    card: Callable[[Any], str]  # HTML, escaped
    as_dict: Callable[[Any], dict[str, Any]]
    rows: Callable[[Any], list[dict[str, Any]]]


FACES: dict[str, Face] = {}


class Shown:
    """Short in a console, a card in a notebook."""

    __slots__ = ()

    def __repr__(self) -> str:
        face = FACES.get(type(self).__name__)
        return f"<{type(self).__name__}>" if face is None else face.line(self)

    def _repr_html_(self) -> str | None:
        face = FACES.get(type(self).__name__)
        return None if face is None else face.card(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, as the JSON output has it."""
        return FACES[type(self).__name__].as_dict(self)

    def to_pandas(self) -> Any:
        """As a pandas DataFrame: the points of a run, the edits of a fix."""
        return pandas_frame(FACES[type(self).__name__].rows(self))

    def to_polars(self) -> Any:
        """The same as a polars DataFrame."""
        return polars_frame(FACES[type(self).__name__].rows(self))


def pandas_frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingExtra("pandas", "pandas", "to_pandas()") from None
    return pandas.DataFrame(rows)


def polars_frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import polars
    except ImportError:
        raise MissingExtra("polars", "polars", "to_polars()") from None
    return polars.DataFrame(rows, infer_schema_length=None)
