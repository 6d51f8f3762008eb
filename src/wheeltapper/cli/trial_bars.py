"""One bar per repeat under way, and a line with what is decided so far; only where a person is watching."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.console import Group

    from wheeltapper.trial.driver import Row, Show
    from wheeltapper.trial.ledger import Books

MOST = 16  # bars at once; more do not fit a screen


@contextmanager
def bars(stream: TextIO) -> Iterator[Show | None]:
    """Gives what the driver calls with the repeats under way, or None where nobody watches."""
    if not stream.isatty():
        yield None
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(file=stream), refresh_per_second=4, transient=True) as live:

        def show(rows: Sequence[Row], books: Books) -> None:
            live.update(screen(rows, books))

        yield show


def screen(rows: Sequence[Row], books: Books) -> Group:
    """The bars, and under them what is done and decided."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    from wheeltapper.report.text import clean

    table = Table.grid(padding=(0, 1))
    for row in [r for r in rows if r.state == "runs"][:MOST]:
        bar = ProgressBar(total=1.0, completed=row.share, width=30, pulse=row.share == 0.0)
        table.add_row(clean(row.arm, 30), f"seed {row.seed}", bar, f"{row.share:.0%}")
    done = sum(len(by_seed) for by_seed in books.outcomes.values())
    decided = [f"{clean(arm, 30)} {v.answer}" for arm, v in books.verdicts.items() if v.answer != "cannot-tell"]
    return Group(table, Text(" · ".join([f"{done} runs done", *decided]), style="dim"))
