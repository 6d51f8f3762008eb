"""Writes docs/ from the code: `python -m wheeltapper.cli.docs`, and with --check fails where a page is stale.

Pages of signs, causes and checks come from their docstrings, the command reference from --help, the list of
formats from the readers. Nobody edits them by hand, so they cannot drift.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from wheeltapper.cli.main import build_parser
from wheeltapper.report.pages import FOLDERS, Page, pages
from wheeltapper.sources import readers

GENERATED = "<!-- Written by `just docs`. Edit the code it comes from, not this page. -->"
# Pages that people write; the generator leaves them alone.
BY_HAND = {"docs/schema.md"}


def documents() -> dict[str, str]:
    """Every generated page: path from the root of the repository -> text."""
    known = pages()
    out = {f"docs/{FOLDERS[page.kind]}/{page.id}.md": page.markdown() for page in known.values()}
    out["docs/cli.md"] = _commands()
    out["docs/formats.md"] = _formats()
    out["docs/README.md"] = _index(known)
    return out


def _index(known: dict[str, Page]) -> str:
    parts = [GENERATED, "# Documentation", "- [Commands](cli.md)\n- [Formats that are read](formats.md)"]
    for kind, folder in FOLDERS.items():
        rows = [f"| [{p.id}]({folder}/{p.id}.md) | {p.title} |" for p in known.values() if p.kind == kind]
        if rows:
            parts.append(f"## {folder.capitalize()}\n\n| id | |\n| --- | --- |\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _formats() -> str:
    rows = []
    for reader in readers():
        about = " ".join((reader.__doc__ or "").strip().split("\n\n")[0].split())
        name = reader.__name__.rpartition(".")[2]
        rows.append(f"| `{name}` | {about.replace('|', chr(92) + '|')} |")
    table = "| reader | what it reads |\n| --- | --- |\n" + "\n".join(rows)
    return f"{GENERATED}\n\n# Formats that are read\n\n{table}\n"


def _commands() -> str:
    parts = [GENERATED, "# Commands"]
    parts += [f"## {name}\n\n```text\n{text}```" for name, text in help_texts()]
    return "\n\n".join(parts) + "\n"


def help_texts() -> Iterator[tuple[str, str]]:
    """(command, its --help) for the program, every command and every sub-command."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "90"  # argparse takes the width from here
    try:
        yield from _help_of(build_parser())
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def _help_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    # Python 3.13 writes "-o, --output FILE" where older versions repeat the name: one form for all.
    yield parser.prog, re.sub(r"(-\w) (\S+), (--[\w-]+) \2", r"\1, \3 \2", parser.format_help())
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _help_of(sub)


def stale(root: Path) -> list[str]:
    """What is wrong with docs/ now: pages that differ, are missing, or belong to nothing."""
    wanted = documents()
    problems = []
    for name, text in wanted.items():
        path = root / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif path.read_text(encoding="utf-8").split() != text.split():  # line breaks of --help vary with Python
            problems.append(f"{name} is stale")
    for path in sorted((root / "docs").rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if name not in wanted and name not in BY_HAND:
            problems.append(f"{name} belongs to no sign, cause, check or command")
    return problems


def write(root: Path) -> int:
    wanted = documents()
    for name, text in wanted.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for problem in stale(root):
        if problem.endswith("or command"):
            (root / problem.split()[0]).unlink()
    return len(wanted)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m wheeltapper.cli.docs", description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page is stale")
    parser.add_argument("--root", default=".", help="the root of the repository (default: here)")
    args = parser.parse_args()
    root = Path(args.root)
    if not args.check:
        print(f"{write(root)} pages written")
        return 0
    problems = stale(root)
    for problem in problems:
        print(problem)
    if problems:
        print("Run `just docs` and commit what it writes.")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
