"""The folder that brought files lie in, one for each place."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path


def folder_for(place: str) -> Path:
    """The same place has the same folder; it ends as the place does, for its name is the name of the run."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wheeltapper" / "places"
    digest = hashlib.sha256(place.encode()).hexdigest()[:16]
    name = re.sub(r"[^\w.-]+", "-", place.split("?")[0].rstrip("/").rsplit("/", 1)[-1])[:80].strip(".") or "runs"
    return home / digest / name


def write_whole(file: Path, data: bytes) -> None:
    """Whole or not at all, so that what was brought before a break need not be brought again."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    part.write_bytes(data)
    os.replace(part, file)
