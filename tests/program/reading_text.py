"""Programs from text, for the tests of code reading."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

from wheeltapper.finding import Finding
from wheeltapper.program.checks import run_checks
from wheeltapper.program.index import programs_of
from wheeltapper.program.program import Program
from wheeltapper.program.reading import Code, codes_of
from wheeltapper.program.scripts import Launch, Sources, parse_script
from wheeltapper.settings.parse import parse_text


def sources_of(files: dict[str, str]) -> Sources:
    scripts = tuple(parse_script(dedent(text), name) for name, text in files.items() if name.endswith(".py"))
    launches = tuple(Launch(Path(name), name, dedent(text)) for name, text in files.items() if name.endswith(".sh"))
    return Sources(scripts, launches, ())


def code_of(text: str = "", **others: str) -> Code:
    """One program: `text` is train.py; others are files by name with `_py`, `_sh` or `_yaml` for the ending."""
    files = {name[::-1].replace("_", ".", 1)[::-1]: body for name, body in others.items()}
    if text:
        files["train.py"] = text
    configs = tuple(parse_text(dedent(body), name, "yaml") for name, body in files.items() if name.endswith(".yaml"))
    codes, _ = codes_of(sources_of(files), configs)
    return next(c for c in codes if c.program.entry.name == "train.py")


def program_from(text: str, **others: str) -> Program:
    files = {"train.py": text, **{name[::-1].replace("_", ".", 1)[::-1]: body for name, body in others.items()}}
    return next(p for p in programs_of(sources_of(files))[0] if p.entry.name == "train.py")


def findings_of(text: str = "", **others: str) -> list[Finding]:
    return list(run_checks(code_of(text, **others)))


def ids(text: str = "", **others: str) -> set[str]:
    return {f.id for f in findings_of(text, **others)}
