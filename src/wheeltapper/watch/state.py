"""What a call of `watch --once` leaves for the next: a small JSON file, written whole or not at all.

It holds what was said about each run and when its record was last seen to grow, no path's contents. A file that does
not read is set aside in words, never trusted in part.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheeltapper.errors import InputError
from wheeltapper.limits import is_plain_file
from wheeltapper.settings.write import replace_bytes
from wheeltapper.watch.incidents import Ledger
from wheeltapper.watch.watcher import Seen

VERSION = 1
MOST_BYTES = 16 << 20
_BEGINS = b'{"version": '


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
        if file.exists() and not is_plain_file(file):
            return State(problem=f"{file} is no plain file; nothing is kept there")
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


def is_ours(file: Path) -> bool:
    """Whether a file that does not read was begun by us, or is empty: it may be written over then."""
    if file.exists() and not is_plain_file(file):
        return False
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_BEGINS))
    except OSError:
        return True  # not there, or writing it will say why not
    return _BEGINS.startswith(head)


def save(file: Path, state: State) -> None:
    """Raises InputError where it cannot be written: the next call would say the same again."""
    body: dict[str, Any] = {"version": VERSION, "ledger": state.ledger.to_json(), "seen": state.seen}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(file, json.dumps(body).encode())
    except (OSError, InputError) as error:
        why = error.what if isinstance(error, InputError) else error.strerror
        raise InputError(f"the state cannot be written to {file}: {why}", do="Name another place with --state FILE.") from None
