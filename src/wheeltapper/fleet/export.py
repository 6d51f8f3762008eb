"""A fleet as a file for other programs: CSV, or Parquet where pyarrow is installed."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wheeltapper.errors import InputError, MissingExtra
from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.table import COLUMNS, settings_in

# A spreadsheet takes a cell that begins so for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def records(members: Sequence[Member]) -> list[dict[str, Any]]:
    """One flat record a run: its columns, then every setting as set:NAME."""
    settings = settings_in(members)
    return [
        {
            **{column.id: column.of(member) for column in COLUMNS.values()},
            **{f"set:{name}": member.row.settings.get(name) for name in settings},
        }
        for member in members
    ]


def as_csv(members: Sequence[Member]) -> str:
    rows = records(members)
    names = list(rows[0]) if rows else list(COLUMNS)
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return "'" + value
    return value


def write_parquet(members: Sequence[Member], target: Path) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("parquet", "pyarrow", "--parquet") from None
    rows = records(members)
    names = list(rows[0]) if rows else list(COLUMNS)
    columns = {name: _one_kind([row[name] for row in rows]) for name in names}
    try:
        parquet.write_table(pyarrow.table(columns), str(target))
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}", do="Name another file.") from None


def _one_kind(values: list[Any]) -> list[Any]:
    """A column of a Parquet file holds one type: numbers, truth values, or text."""
    known = [value for value in values if value is not None]
    if all(isinstance(value, bool) for value in known):
        return values
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        return [None if value is None else float(value) for value in values]
    return [None if value is None else str(value) for value in values]
