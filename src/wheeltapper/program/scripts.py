"""Find and parse the Python scripts and launch scripts of a small repository, without running them.

Everything is bounded: a repository may hold a data set next to its code, or a generated file of
50 MB. What was left out is a Note, never silence.
"""

from __future__ import annotations

import ast
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from wheeltapper.reading.record import Note

MAX_BYTES = 2_000_000  # a hand-written script of 2 MB does not exist; a generated table of weights does
MAX_FILES = 500  # beyond this a folder is not "a small repository"; the first 500 in name order are read
MAX_DEPTH = 12
MAX_NESTING = 300  # a sum of 300 terms, or as many elifs; Python's own limit of 1,000 frames is not far beyond
SHARED = {"ctx", "op", "ops"}
SKIPPED_FOLDERS = {
    ".git", ".hg", ".svn", ".tox", ".venv", "venv", "env", "node_modules", "__pycache__", "site-packages",
    "build", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".ipynb_checkpoints", "wandb", "mlruns",
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Script:
    """One parsed Python file. `parents` lets a reader climb from an expression to what uses it."""

    path: Path
    name: str  # as the user would write it; goes into Place.file
    tree: ast.Module
    text: str
    parents: dict[ast.AST, ast.AST] = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    @cached_property
    def module(self) -> tuple[str, ...]:
        """The dotted module path as far as the path tells it: `pkg/train.py` -> ("pkg", "train")."""
        parts = list(Path(self.name).with_suffix("").parts)
        return tuple(parts[:-1] if parts[-1] == "__init__" else parts)


@dataclass(frozen=True)
class Launch:
    """A shell script, kept as text with its name."""

    path: Path
    name: str
    text: str


@dataclass(frozen=True)
class Sources:
    """What was found under the given paths."""

    scripts: tuple[Script, ...]
    launches: tuple[Launch, ...]
    notes: tuple[Note, ...]


def read_sources(paths: Iterable[Path | str]) -> Sources:
    """Parse every `.py` and keep every `.sh` under `paths` (files or folders)."""
    scripts: list[Script] = []
    launches: list[Launch] = []
    notes: list[Note] = []
    files, more = _files_under([Path(p) for p in paths])
    if more:
        notes.append(Note(f"{more} more scripts were not read: only the first {MAX_FILES} are", ".", level="lost"))
    for path in files:
        name = path.as_posix()
        try:
            size = path.stat().st_size
            data = path.read_bytes() if size <= MAX_BYTES else b""
        except OSError as error:
            notes.append(Note(f"cannot be opened: {error.strerror}", name, level="lost"))
            continue
        if size > MAX_BYTES:
            notes.append(Note(f"not read: {size / 1e6:.1f} MB is too large for a script", name, level="lost"))
            continue
        text = data.decode("utf-8-sig", errors="replace")
        if path.suffix != ".py":
            launches.append(Launch(path, name, text))
            continue
        script = _parse(path, name, text, notes)
        if script is not None:
            scripts.append(script)
    return Sources(tuple(scripts), tuple(launches), tuple(notes))


def parse_script(text: str, name: str = "train.py") -> Script:
    """A Script from text in memory; raises SyntaxError on text that is not Python 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape in the user's string is not our business
        tree = ast.parse(text)
    return Script(Path(name), name, tree, text, parents_of(tree))


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes right below, as ast.iter_child_nodes has them, without operators and contexts: those are shared objects
    that lie nowhere. Several times faster, and everything here is made of it."""
    out: list[ast.AST] = []
    for name in node._fields:
        if name in SHARED:
            continue
        value = getattr(node, name, None)
        if value.__class__ is list:
            out += [one for one in value if isinstance(one, ast.AST)]
        elif isinstance(value, ast.AST):
            out.append(value)
    return out


def parents_of(tree: ast.AST) -> dict[ast.AST, ast.AST]:
    """Every node's parent, level by level; RecursionError where there are more levels than can be climbed down."""
    parents: dict[ast.AST, ast.AST] = {}
    level = [tree]
    for _ in range(MAX_NESTING):
        below = []
        for node in level:
            for child in children(node):
                parents[child] = node
                below.append(child)
        if not below:
            return parents
        level = below
    raise RecursionError


def _parse(path: Path, name: str, text: str, notes: list[Note]) -> Script | None:
    try:
        script = parse_script(text, name)
    except SyntaxError as error:
        old = "Missing parentheses in call to 'print'" in str(error) or "except" in str(error.text or "")
        why = "this looks like Python 2" if old else f"not valid Python 3: {error.msg}"
        notes.append(Note(f"not read: {why}", name, error.lineno, level="lost"))
        return None
    except (ValueError, RecursionError, MemoryError):
        notes.append(Note("not read: the parser cannot take this file apart", name, level="lost"))
        return None
    return Script(path, name, script.tree, text, script.parents)


def _files_under(paths: list[Path]) -> tuple[list[Path], int]:
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            base = len(path.parts)
            for folder, folders, names in os.walk(path):
                here = Path(folder)
                folders[:] = sorted(
                    f for f in folders if f not in SKIPPED_FOLDERS and len(here.parts) - base < MAX_DEPTH
                )
                found += [here / name for name in sorted(names) if name.endswith((".py", ".sh", ".slurm", ".sbatch"))]
        else:
            found.append(path)
    unique = list(dict.fromkeys(found))
    return unique[:MAX_FILES], max(0, len(unique) - MAX_FILES)
