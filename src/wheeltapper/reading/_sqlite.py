"""SQLite stores opened so that nothing can change them: read-only, and immutable where no writer is at work."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wheeltapper.reading import Head
from wheeltapper.reading.record import Note

MAGIC = b"SQLite format 3\x00"
STEPS_LIMIT = 2_000  # progress callbacks of 1M virtual-machine steps: some minutes; a hostile view never ends


def has_columns(head: Head, table: str, *needed: str) -> bool:
    """Does the database have the table with these columns? Asked of SQLite itself, beyond the head: the
    schema of a store with many tables does not lie at the start of the file."""
    if not head.data.startswith(MAGIC):
        return False
    with opened(head.path, []) as db:
        if db is None:
            return False
        try:
            return set(needed) <= set(columns_of(db, table))
        except sqlite3.Error:
            return False


@contextmanager
def opened(path: Path, notes: list[Note]) -> Iterator[sqlite3.Connection | None]:
    """A connection, or None with a Note. With a WAL beside it the file is live, and must not be taken as final."""
    live = path.with_name(path.name + "-wal").exists()
    uri = path.resolve().as_uri() + ("?mode=ro" if live else "?mode=ro&immutable=1")
    db = None
    try:
        db = sqlite3.connect(uri, uri=True)
        db.text_factory = lambda raw: raw.decode("utf-8", "replace")
        left = [STEPS_LIMIT]

        def tick() -> int:
            left[0] -= 1
            return int(left[0] < 0)

        db.set_progress_handler(tick, 1_000_000)
        db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except (sqlite3.Error, OSError, ValueError) as error:
        notes.append(Note(f"the database cannot be opened: {error}", str(path), level="lost"))
        if db is not None:
            db.close()
            db = None
    try:
        yield db
    finally:
        if db is not None:
            db.close()


def columns_of(db: sqlite3.Connection, table: str) -> list[str]:
    """The columns of a table (not a view); empty if there is none. `table` is a name of ours, never the file's."""
    try:
        kind = db.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
        if kind is None or kind[0] != "table":
            return []
        return [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
    except UnicodeDecodeError:  # a damaged name, in the table or in SQLite's own message about it
        return []


def rows_of(db: sqlite3.Connection, query: str, notes: list[Note], file: str) -> Iterator[tuple[object, ...]]:
    """The rows of a query; a damaged page ends it with a Note, not an error."""
    try:
        yield from db.execute(query)
    except (sqlite3.Error, OverflowError, UnicodeDecodeError) as error:
        notes.append(Note(f"reading stopped: {error}", file, level="lost"))
