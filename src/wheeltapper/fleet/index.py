"""The index: what was said about each unit, in one SQLite file in the cache folder.

    units    path -> how it looked when it was last read (sizes and times), and its content
    answers  (content, judge) -> the rows of its runs

A changed judge finds no answer of its own and judges again. A file that is no index of ours, or a damaged one, is set aside
and built anew: it holds nothing that cannot be read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType

import msgspec

from wheeltapper.errors import InputError
from wheeltapper.fleet.row import Row

SCHEMA = 1
KEPT = 90 * 86400.0  # seconds: an answer that nobody asked for so long is dropped
WAIT = 30.0  # seconds for another scan that writes
_TABLES = """
CREATE TABLE IF NOT EXISTS units (path TEXT PRIMARY KEY, stamp TEXT NOT NULL, content TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS answers (
    content TEXT NOT NULL, judge TEXT NOT NULL, rows BLOB NOT NULL, used REAL NOT NULL, PRIMARY KEY (content, judge)
) WITHOUT ROWID;
"""

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(list[Row])


class Answer(msgspec.Struct, frozen=True):
    """What is known of a unit."""

    stamp: str
    content: str
    rows: list[Row]


def cache_folder() -> Path:
    """Where programs keep what can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheeltapper"


class Index:
    """`with Index(judge) as index`: known(paths), by_content(content), keep(answers)."""

    def __init__(self, judge: str, file: Path | None = None) -> None:
        self.file = file or cache_folder() / "fleet.sqlite"
        self.judge = judge
        self.problem = ""  # why what lay there was not used
        self._db = self._open()

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def known(self, paths: Iterable[str]) -> dict[str, Answer]:
        """What this judge has said about the units at these paths."""
        out: dict[str, Answer] = {}
        asked = list(paths)
        for start in range(0, len(asked), 500):
            part = asked[start : start + 500]
            marks = ",".join("?" * len(part))
            found = self._db.execute(
                f"SELECT path, stamp, units.content, rows FROM units JOIN answers USING (content) "
                f"WHERE judge = ? AND path IN ({marks})",
                (self.judge, *part),
            )
            for path, stamp, content, rows in found:
                with contextlib.suppress(msgspec.DecodeError):  # rows of a damaged page are read again
                    out[path] = Answer(stamp, content, _decoder.decode(rows))
        return out

    def by_content(self, content: str) -> list[Row] | None:
        """What was said about a unit that holds the same, wherever it lay."""
        query = "SELECT rows FROM answers WHERE content = ? AND judge = ?"
        found = self._db.execute(query, (content, self.judge)).fetchone()
        try:
            return None if found is None else _decoder.decode(found[0])
        except msgspec.DecodeError:
            return None

    def keep(self, answers: Mapping[str, Answer]) -> None:
        """Remember what came of units."""
        now = time.time()
        with contextlib.suppress(sqlite3.OperationalError), self._db:  # a full disk or a lock costs a second reading, no more
            self._db.executemany(
                "INSERT OR REPLACE INTO units VALUES (?, ?, ?)",
                [(path, answer.stamp, answer.content) for path, answer in answers.items()],
            )
            self._db.executemany(
                "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?)",
                [(answer.content, self.judge, _encode(answer.rows), now) for answer in answers.values()],
            )

    def used(self, answers: Iterable[Answer]) -> None:
        """These are still asked for; what nobody has asked for in months is dropped."""
        now = time.time()
        with contextlib.suppress(sqlite3.OperationalError), self._db:
            old = self._db.execute("SELECT min(used) FROM answers").fetchone()[0]
            if old is None or now - old < KEPT / 3:
                return
            self._db.executemany(
                "UPDATE answers SET used = ? WHERE content = ? AND judge = ?",
                [(now, answer.content, self.judge) for answer in answers],
            )
            self._db.execute("DELETE FROM answers WHERE used < ?", (now - KEPT,))
            self._db.execute("DELETE FROM units WHERE content NOT IN (SELECT content FROM answers)")

    def _open(self) -> sqlite3.Connection:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            return self._in_memory(f"{self.file.parent} cannot be made: {error.strerror}")
        try:
            return _connect(self.file)
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError) and not self.file.is_file():
                return self._in_memory(f"{self.file} cannot be opened: {error}")
            return self._anew(str(error))

    def _anew(self, why: str) -> sqlite3.Connection:
        aside = self.file.with_name(f"{self.file.name}.broken-{hashlib.sha256(str(time.time_ns()).encode()).hexdigest()[:8]}")
        try:
            os.replace(self.file, aside)
            for tail in ("-wal", "-shm"):
                self.file.with_name(self.file.name + tail).unlink(missing_ok=True)
            self.problem = f"the index {self.file} was not usable ({why}); it is built anew, the old one is {aside.name}"
            return _connect(self.file)
        except (OSError, sqlite3.DatabaseError) as error:
            return self._in_memory(f"the index {self.file} is not usable: {error}")

    def _in_memory(self, why: str) -> sqlite3.Connection:
        self.problem = f"{why}; nothing is remembered"
        db = sqlite3.connect(":memory:", check_same_thread=False)
        db.executescript(_TABLES)
        return db


def _connect(file: Path) -> sqlite3.Connection:
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is no file, so no index can be kept there.", do="Move it away, or set XDG_CACHE_HOME.")
    db = sqlite3.connect(file, timeout=WAIT, check_same_thread=False)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            raise sqlite3.DatabaseError(f"it is of schema {version}, this program writes {SCHEMA}")
        db.executescript(_TABLES)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
        if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise sqlite3.DatabaseError("it is damaged")
    except sqlite3.DatabaseError:
        db.close()
        raise
    return db
