"""A page of documentation, and the list of pages, in the terminal."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from wheeltapper.report.pages import Page
from wheeltapper.report.terminal import heading_rule, listed, plain_table, put


def print_page(page: Page, out: Console) -> None:
    parts: list[RenderableType] = [
        Text.assemble((page.id, "bold"), f"  ({page.kind})"),
        Text(page.title),
    ]
    for heading, text in page.sections:
        parts += [Text(f"\n{heading}", style="bold"), Padding(_body(text), (0, 0, 0, 2))]
    parts.append(Text(f"\n{page.source}", style="dim"))
    put(out, *parts)


def _body(text: str) -> RenderableType:
    """Paragraphs and items of lists are rewrapped to the screen; tables and code keep their lines."""
    blocks: list[RenderableType] = []
    for block in text.split("\n\n"):
        lines = textwrap.dedent(block).splitlines()
        space = [Text("")] if blocks else []
        if lines and lines[0].startswith("- "):
            items = re.split(r"^- ", "\n".join(lines), flags=re.MULTILINE)[1:]
            blocks += [*space, listed("-", [" ".join(item.split()) for item in items], indent=0)]
        elif any(line.startswith(("|", "*", " ", ">", "`", "1.")) for line in lines):
            blocks += [*space, Text("\n".join(lines))]
        else:
            blocks += [*space, Text(" ".join(lines))]
    return Group(*blocks)


def print_list(title: str, rows: Iterable[Sequence[str]], out: Console) -> None:
    table = plain_table()
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    put(out, heading_rule(title), table)
