"""What a call of `watch --once` leaves for the next: a small JSON file, written whole or not at all.

It holds what was said about each run and when its record was last seen to grow, no path's contents. A file that does
not read is set aside in words, never trusted in part.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.watch.incidents import Ledger
from wheeltapper.watch.watcher import Seen

VERSION = 1
MOST_BYTES = 16 << 20


@dataclass(slots=True)
class State:
    ledger: Ledger = field(default_factory=Ledger)
    seen: dict[str, Seen] = field(default_factory=dict)
    fresh: bool = True  # nothing was known before this call
    problem: str = ""  # why what lay there was not used


def default_file(paths: Iterable[str | os.PathLike[str]]) -> Path:
    """One file for each set of watched paths, where programs keep such things."""
    names = "\n".join(sorted(os.path.abspath(path) for path in paths))
    home = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(home) / "wheeltapper" / f"watch-{hashlib.sha256(names.encode()).hexdigest()[:16]}.json"


def load(file: Path) -> State:
    try:
        if file.stat().st_size > MOST_BYTES:
            return State(problem=f"{file} is too large to be a state of ours; it will be written anew")
        data = json.loads(file.read_text(encoding="utf-8"))
        if data["version"] != VERSION:
            return State(problem=f"{file} was written by another version; it will be written anew")
        seen = {
            str(key): Seen(float(written), float(grown), tuple(int(n) for n in content), str(words))
            for key, (written, grown, content, words) in data["seen"].items()
        }
        return State(Ledger.from_json(data["ledger"]), seen, fresh=False)
    except FileNotFoundError:
        return State()
    except OSError as error:
        return State(problem=f"{file} cannot be read: {error.strerror}")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return State(problem=f"{file} is not a state of ours; it will be written anew")


def save(file: Path, state: State) -> None:
    """Raises InputError where it cannot be written: the next call would say the same again."""
    body: dict[str, Any] = {"version": VERSION, "ledger": state.ledger.to_json(), "seen": state.seen}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(body, out)
            os.replace(name, file)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise InputError(
            f"the state cannot be written to {file}: {error.strerror}", do="Name another place with --state FILE."
        ) from None
