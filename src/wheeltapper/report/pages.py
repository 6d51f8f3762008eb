"""The page of every observation, sign, cause and code check, from the docstring of its one file.

A page is a title and named sections. `wheeltapper explain`, the HTML report and docs/ all show these pages, so
there is no second text to keep equal.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Literal

import wheeltapper
from wheeltapper.observations import Observation, observations
from wheeltapper.rules.causes import Cause, causes

Kind = Literal["observation", "sign", "cause", "check"]
# Where the pages of a kind lie; a module with an ID and a docstring is a page. An observation is called as its file is.
PACKAGES: dict[Kind, str] = {
    "observation": "wheeltapper.observations",
    "sign": "wheeltapper.rules.signs",
    "cause": "wheeltapper.rules.causes",
    "check": "wheeltapper.program.checks",
}
FOLDERS: dict[Kind, str] = {"observation": "observations", "sign": "signs", "cause": "causes", "check": "checks"}
SAID = {
    "low": "below its healthy band",
    "high": "above its healthy band",
    "out": "outside its healthy band",
    "in": "inside its healthy band",
    "seen": "seen",
    "clear": "looked for and not there",
}


@dataclass(frozen=True, slots=True)
class Page:
    id: str
    kind: Kind
    title: str
    sections: tuple[tuple[str, str], ...]  # heading, text
    source: str  # path of the file, from the root of the repository

    def markdown(self) -> str:
        parts = [f"# {self.id}", f"*{self.kind}* · {self.title}"]
        parts += [f"## {heading}\n\n{text}" for heading, text in self.sections]
        parts.append(f"---\nWritten from [{self.source}](../../{self.source}) by `just docs`; edit that file.")
        return "\n\n".join(parts) + "\n"


def parse_page(ident: str, kind: Kind, docstring: str, source: str) -> Page:
    """Headings may be written "## Heading" or underlined with dashes.

    >>> text = "A title\\nof two lines.\\n\\n## What it sees\\nThis.\\n\\nReferences\\n----------\\nNone."
    >>> page = parse_page("x", "sign", text, "x.py")
    >>> page.title, page.sections
    ('A title of two lines.', (('What it sees', 'This.'), ('References', 'None.')))
    """
    text = re.sub(r"^(\S[^\n]*)\n-{3,}$", r"## \1", inspect.cleandoc(docstring), flags=re.MULTILINE)
    head, *rest = re.split(r"^## +", text, flags=re.MULTILINE)
    lines = head.strip().split("\n\n")
    sections = []
    if len(lines) > 1:
        sections.append(("In short", "\n\n".join(lines[1:]).strip()))
    for block in rest:
        heading, _, text = block.partition("\n")
        sections.append((heading.strip(), text.strip()))
    return Page(ident, kind, " ".join(lines[0].split()), tuple(sections), source)


@cache
def pages() -> tuple[Page, ...]:
    """Every page, kind after kind, in name order. A cause and the code check that proves it may share an id."""
    return tuple(page for kind in PACKAGES for page in pages_of(kind))


def pages_of(kind: Kind) -> Iterator[Page]:
    """The pages of one kind; those of observations and causes end with what the judge takes from their data."""
    if kind == "observation":
        data = {observation.id: _states(observation) for observation in observations()}
    else:
        data = {cause.id: _counts(cause) for cause in causes()} if kind == "cause" else {}
    for page in _written(kind):
        told = data.get(page.id)
        yield replace(page, sections=(*page.sections, ("What the judge takes from it", told))) if told else page


def _states(observation: Observation) -> str:
    """The states of an observation and which of them are healthy."""
    low, high = observation.band
    healthy = " and ".join(
        words for words in ("" if low is None else f"from {low:g}", "" if high is None else f"below {high:g}") if words
    )
    lines = [
        f"- Kind of trouble: {observation.about}.",
        f"- Cut into states at {', '.join(f'{edge:g}' for edge in observation.edges)}; bits are fitted for each.",
        f"- Healthy {healthy}." if healthy else "- No value is unhealthy by itself.",
    ]
    lines += ["- A run in the lowest state is never called sound."] if observation.needed else []
    lines += [] if observation.live else ["- Not asked while the run grows."]
    return "\n".join(lines)


def _counts(cause: Cause) -> str:
    """What a cause declares: what it shows, what excludes it, what proves it."""
    lines = [f"- Kind of trouble: {cause.about}."]
    for title, said in (("Shows", cause.shows), ("Excluded by", cause.forbids)):
        if said:
            lines.append(f"- {title}: {'; '.join(f'{id_} {SAID[word]}' for id_, word in said.items())}.")
    if cause.proved_by:
        lines.append(f"- Findings of settings and code that speak for it: {', '.join(cause.proved_by)}.")
    return "\n".join(lines)


def _written(kind: Kind) -> Iterator[Page]:
    root = Path(wheeltapper.__file__).resolve().parent
    if kind == "check":
        # What is found in configurations has no module of its own; its pages are files.
        for file in sorted((root / "audit" / "pages").glob("*.md")):
            yield parse_page(
                file.stem, kind, file.read_text(encoding="utf-8"), f"src/wheeltapper/audit/pages/{file.name}"
            )
    for module in _modules(PACKAGES[kind]):
        own = module.__name__.rpartition(".")[2].replace("_", "-") if kind == "observation" else None
        ident = getattr(module, "ID", own)
        if ident is None or not module.__doc__ or module.__file__ is None:
            continue
        source = Path(module.__file__).resolve().relative_to(root).as_posix()
        yield parse_page(ident, kind, module.__doc__, f"src/wheeltapper/{source}")


def _modules(package: str) -> Iterable[ModuleType]:
    found = importlib.import_module(package)
    for info in pkgutil.iter_modules(found.__path__):
        if not info.name.startswith("_"):
            yield importlib.import_module(f"{package}.{info.name}")


__all__ = ["FOLDERS", "PACKAGES", "Kind", "Page", "pages", "pages_of", "parse_page"]
