"""Claims in blocks of code: settings that are quoted or proposed, commands, rows of values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

from wheeltapper.review.answer_settings import exists
from wheeltapper.review.document import Passage
from wheeltapper.review.model import AnyClaim, Command, Config, Edit, Setting
from wheeltapper.review.record import Record
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.tree import Leaf

Role = Literal["quoted", "proposed", "missing"]
_PROPOSED = re.compile(
    r"\b(?:after|fixed|fix|correct(?:ed)?|recommend\w*|suggest\w*|propos\w*|better|change|solution|new config\w*|improve\w*|increase|enable|add|disable|stable|optimized|replace|final|step \d|to fix|instead|use)\b|✅",
    re.I,
)
_QUOTED = re.compile(
    r"\b(?:before|problematic|your config|current|wrong|too conservative|causes|issues?|problems?|existing|root cause)\b|❌",
    re.I,
)
_MISSING = re.compile(r"doesn't exist|does not exist|no such", re.I)
_COMPLETE = re.compile(r"\b(?:complete|whole|full|entire|replace your current)\b", re.I)
_COMMAND = re.compile(
    r"^\s*(?:\$\s*)?(?:python3?|torchrun|accelerate|deepspeed|bash|sh|\./\S+|srun|CUDA_\w+=\S+|scp|cp|wget)\b"
)
_COMMENT = re.compile(r"(?:^|\s)#\s?(?P<text>.*)$")
_KEY_LINE = re.compile(r"^\s*(?:export\s+)?[\w.\"'{-]+\s*[:=]")
_STRUCTURE = {"name", "type", "class_name"}  # keys that say which section is meant, not what is changed in it
_FORMATS = {
    "yaml": "yaml",
    "yml": "yaml",
    "json": "json",
    "toml": "toml",
    "python": "python",
    "py": "python",
    "": "yaml",
    "bash": "shell",
    "sh": "shell",
}


def blocks_of(passages: Sequence[Passage]) -> Iterator[list[Passage]]:
    for block, lines in groupby((p for p in passages if p.kind == "code"), key=lambda p: p.block):
        if block >= 0:
            yield list(lines)


def remarks_of(lines: Sequence[Passage]) -> list[tuple[str, Passage]]:
    """The remarks of a block as sentences, each with the key of its line before it, and the section that key stands in."""
    out = []
    above: list[tuple[int, str]] = []  # indents and keys of the sections that are open
    for p in lines:
        indent = len(p.text) - len(p.text.lstrip())
        match, key = _COMMENT.search(p.text), _KEY_LINE.match(p.text)
        if key:
            above = [one for one in above if one[0] < indent]
        if match and match["text"].strip():
            code = p.text[: match.start()].strip()
            words = f"{code}: {match['text'].strip()}" if code else match["text"].strip()
            section = ".".join(name for _, name in above)
            out.append((section, Passage(p.line, words, "prose", p.heading, p.block, p.language, p.before)))
        if key:
            above.append((indent, key.group().strip(" :=\"'{-")))
    return out


def read_block(lines: Sequence[Passage], record: Record) -> list[AnyClaim]:
    """The claims of one block, by what it is: a command, settings, or neither."""
    language = lines[0].language
    if any(_COMMAND.match(p.text) for p in lines) and language in ("bash", "sh", "shell", "console", ""):
        return _commands(lines)
    if language == "python" and any(re.match(r"\s*--\w", p.text) for p in lines):
        return [
            Command(text=p.text.strip(), line=p.line, source=p.text.strip())
            for p in lines
            if p.text.strip().startswith("--")
        ]
    if language not in _FORMATS or not any(_KEY_LINE.match(p.text) for p in lines):
        return []
    claims: list[AnyClaim] = []
    for role, part in _parts(lines):
        claims += _settings(part, role)
    if language in ("python", "py", ""):  # a program, or a table in plain text: only what is a setting of this run
        claims = [c for c in claims if isinstance(c, Setting | Edit) and exists(c.name, record) is not None]
    return claims


def _commands(lines: Sequence[Passage]) -> list[AnyClaim]:
    """Command lines, with those that end in a backslash joined; each option keeps its own line."""
    claims: list[AnyClaim] = []
    for p in lines:
        text = p.text.strip().rstrip("\\").strip()
        if text and not text.startswith("#"):
            claims.append(Command(text=text, line=p.line, source=text))
    return claims


def _role(words: str) -> Role | None:
    if _MISSING.search(words):
        return "missing"
    quoted, proposed = _QUOTED.search(words), _PROPOSED.search(words)
    if quoted and proposed:
        return "quoted" if quoted.start() < proposed.start() else "proposed"
    return "quoted" if quoted else "proposed" if proposed else None


def _parts(lines: Sequence[Passage]) -> list[tuple[Role, list[Passage]]]:
    """A block cut where a remark on a line of its own says that what follows is the old or the new."""
    first = lines[0]
    words = f"{first.before} {first.heading.rpartition(' / ')[2]}"
    role: Role = _role(first.before) or _role(words) or _role(first.heading) or "quoted"
    parts: list[tuple[Role, list[Passage]]] = [(role, [])]
    for p in lines:
        if p.text.strip().startswith("#"):
            turned = _role(p.text)
            if turned is not None:
                parts.append((turned, []))
        parts[-1][1].append(p)
    return [(role, part) for role, part in parts if any(_KEY_LINE.match(p.text) for p in part)]


def _settings(part: Sequence[Passage], role: Role) -> list[AnyClaim]:
    first = part[0]
    source = "\n".join(p.text for p in part)
    format_ = _FORMATS[first.language]
    tree = parse_text(source, "block", format_)
    complete = role == "proposed" and bool(_COMPLETE.search(f"{first.before} {first.heading.rpartition(' / ')[2]}"))
    claims: list[AnyClaim] = []
    texts = dict(enumerate(part, 1))
    for leaf, value in _whole_lists(tree.leaves):
        claims.append(_claim(leaf, value, role, texts.get(leaf.line, first)))
    if role == "proposed" and format_ in ("yaml", "json", "toml") and len(tree.leaves):
        shown = next((p.text.strip() for p in part if not p.text.strip().startswith("#")), first.text.strip())
        claims.insert(0, Config(text=shown, line=first.line, source=source, format=format_, complete=complete))  # type: ignore[arg-type]
    return [
        claim
        for claim in claims
        if not (isinstance(claim, Edit) and (complete or claim.name.rpartition(".")[2] in _STRUCTURE))
    ]


def _whole_lists(leaves: Sequence[Leaf]) -> Iterator[tuple[Leaf, Any]]:
    """Leaves with their values; the items of a list as one value at the first of them."""
    for _, group in groupby(leaves, key=lambda leaf: leaf.path[:-1] if isinstance(leaf.path[-1], int) else leaf.path):
        items = list(group)
        yield items[0], [leaf.value for leaf in items] if isinstance(items[0].path[-1], int) else items[0].value


def _claim(leaf: Leaf, value: Any, role: Role, at: Passage) -> AnyClaim:
    name = ".".join(str(part) for part in leaf.path if not isinstance(part, int))
    if role == "missing":
        return Setting(text=at.text.strip(), line=at.line, name=name, present=False)
    if role == "proposed":
        return Edit(text=at.text.strip(), line=at.line, name=name, new=value)
    return Setting(text=at.text.strip(), line=at.line, name=name, value=value)
