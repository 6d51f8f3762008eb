"""Writes docs/ from the code: `python -m wheeltapper.cli.docs`, and with --check fails where a page is stale.

Pages of observations, signs, causes and checks come from their docstrings, the command reference from --help, the list of
formats from the readers. Nobody edits them by hand, so they cannot drift. A page of docs/ that begins with its title is
written by hand: it is linked and left alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from wheeltapper.cli.main import build_parser
from wheeltapper.reading import readers
from wheeltapper.report.pages import FOLDERS, Page, pages
from wheeltapper.run import apart

GENERATED = "<!-- Written by `just docs`. Edit the code it comes from, not this page. -->"


def documents(root: Path = Path()) -> dict[str, str]:
    """Every generated page: path from the root of the repository -> text."""
    known = pages()
    out = {f"docs/{FOLDERS[page.kind]}/{page.id}.md": page.markdown() for page in known}
    out["docs/cli.md"] = _commands()
    out["docs/formats.md"] = _formats()
    out["docs/json.md"] = _json()
    out["docs/README.md"] = _index(known, guides(root))
    return out


def guides(root: Path) -> list[tuple[str, str]]:
    """Pages of docs/ that are written by hand, with their titles."""
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted((root / "docs").glob("*.md"))]
    return [(name, text.splitlines()[0].lstrip("# ")) for name, text in texts if text.startswith("# ")]


def _index(known: Sequence[Page], by_hand: Sequence[tuple[str, str]]) -> str:
    parts = [
        GENERATED,
        "# Documentation",
        "- [Commands](cli.md)\n- [Formats that are read](formats.md)\n- [JSON output](json.md)"
        + "".join(f"\n- [{title}]({name})" for name, title in by_hand),
    ]
    for kind, folder in FOLDERS.items():
        rows = [f"| [{p.id}]({folder}/{p.id}.md) | {p.title} |" for p in known if p.kind == kind]
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
    together = (
        (apart.__doc__ or "").strip().replace("Which files of one folder tell one run.", "## When files are one run")
    )
    return f"{GENERATED}\n\n# Formats that are read\n\n{table}\n\n{together}\n"


def _json() -> str:
    parts = [
        GENERATED,
        "# JSON output",
        "The schemas are files of the package (`wheeltapper/report/schema/`). The second part of `version` rises "
        "when a field is added, the first when one goes or changes its meaning. A number that is not finite is one "
        'of the strings `"NaN"`, `"Infinity"`, `"-Infinity"` ([why](../design/001-nan.md)).',
    ]
    commands = {"diagnosis": "diagnose", "show": "show", "check": "check", "fix": "fix", "followup": "followup"}
    titles = {name: f"`wheeltapper {command} --json`" for name, command in commands.items()}
    titles |= {"brief": "`wheeltapper diagnose --brief --json`", "review": "`wheeltapper review --json`"}
    titles |= {"lessons": "`wheeltapper lessons --json`", "plan": "`plan.yaml`", "case": "`case.json`"}
    for name, title in titles.items():
        schema = json.loads((files("wheeltapper.report") / "schema" / f"{name}.json").read_text(encoding="utf-8"))
        rows = [f"| `{path}` | {kind} | {about} |" for path, kind, about in _fields(schema, schema, "")]
        table = "| field | type | |\n| --- | --- | --- |\n" + "\n".join(rows)
        parts.append(f"## {title}\n\n{table}")
    return "\n\n".join(parts) + "\n"


def _fields(node: Any, schema: Any, path: str) -> Iterator[tuple[str, str, str]]:
    """(path, type, description) of every field, depth first; `[]` marks the items of a list."""
    for name, value in node.get("properties", {}).items():
        about = value.get("description", "")
        inner, kind, mark = _resolved(value, schema), "", f"{path}{name}"
        while inner.get("type") == "array":
            inner, mark = _resolved(inner["items"], schema), f"{mark}[]"
        for option in inner.get("anyOf", ()):
            option = _resolved(option, schema)
            kind += (" or " if kind else "") + _kind(option)
            inner = option if "properties" in option else inner
        yield mark, kind or _kind(inner), about or inner.get("description", "")
        yield from _fields(inner, schema, f"{mark}.")


def _resolved(node: Any, schema: Any) -> Any:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _kind(node: Any) -> str:
    if "const" in node:
        return f"`{node['const']}`"
    if "enum" in node:
        return ", ".join("null" if v is None else f"`{v}`" for v in node["enum"])
    if "anyOf" in node:
        return "number"
    kind = node.get("type", "any")
    return " or ".join(kind) if isinstance(kind, list) else str(kind)


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
    wanted = documents(root)
    by_hand = {f"docs/{name}" for name, _ in guides(root)}
    problems = []
    for name, text in wanted.items():
        path = root / name
        if not path.is_file():
            problems.append(f"{name} is missing")
        elif path.read_text(encoding="utf-8").split() != text.split():  # line breaks of --help vary with Python
            problems.append(f"{name} is stale")
    for path in sorted((root / "docs").rglob("*.md")):
        name = path.relative_to(root).as_posix()
        if name not in wanted and name not in by_hand:
            problems.append(f"{name} belongs to no observation, sign, cause, check or command")
    return problems


def write(root: Path) -> int:
    wanted = documents(root)
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
