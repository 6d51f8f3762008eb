"""A fleet in the terminal: what matters first, one line a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from wheeltapper.fleet.scan import Fleet, Member
from wheeltapper.fleet.sweep import Sweep
from wheeltapper.fleet.table import Group
from wheeltapper.report.terminal import SIGNS, STYLE, plain_table, put
from wheeltapper.report.text import clean, duration, num, percent, plural

MOST_LINES = 40  # runs shown without --all: a screen or two
WIDE = 110  # columns of a terminal that have room for rate and format


def print_fleet(members: Sequence[Member], fleet: Fleet, out: Console, *, whole: bool = False) -> None:
    put(out, Text(counts_line(members), style="bold"))
    shown = members if whole else members[:MOST_LINES]
    if shown:
        put(out, _table(shown, wide=out.width >= WIDE))
    if len(shown) < len(members):
        put(out, Text(f"{len(members) - len(shown):,} more: --all shows them, --filter and --group choose.", style="dim"))
    print_remarks(fleet, out)


def print_groups(groups: Sequence[Group], by: str, members: Sequence[Member], out: Console) -> None:
    put(out, Text(counts_line(members), style="bold"))
    table = plain_table()
    table.show_header = True
    for title in (by, "runs", "ill", "cannot tell", "sound", "best", "most common cause"):
        table.add_column(Text(title, style="dim"), justify="right" if title in ("runs", "ill", "cannot tell", "sound") else "left")
    for g in groups:
        best = f"{num(g.best)} {g.score_name}" if g.best is not None else ""
        cells = (clean(g.value, 40), str(g.n), str(g.ill), str(g.cannot_tell), str(g.sound), best, g.cause)
        table.add_row(*(Text(cell) for cell in cells))
    put(out, table)


def print_sweep(sweep: Sweep, out: Console) -> None:
    put(out, Text(sweep.headline, style="bold"))
    for title, links in (("With illness", sweep.illness), (f"With {sweep.score_name or 'the score'}", sweep.score)):
        if links:
            put(out, Text(""), Text(title, style="bold"))
            table = plain_table()
            table.add_column(no_wrap=True)
            table.add_column(ratio=1)
            table.add_column(justify="right", no_wrap=True, style="dim")
            for link in links:
                style = "bold" if link.holds else ""
                table.add_row(Text(clean(link.setting, 40), style=style), Text(link.words), Text(f"p = {num(link.p_all)}"))
            put(out, table)
    put(out, Text(""), *(Text(note, style="dim") for note in sweep.notes))


def counts_line(members: Sequence[Member]) -> str:
    verdicts = Counter(member.row.verdict for member in members)
    parts = [f"{verdicts[key]:,} {words}" for key, words in (("ill", "ill"), ("cannot-tell", "cannot tell"), ("sound", "sound"))]
    return f"{plural(len(members), 'run')}: {', '.join(parts)}"


def print_remarks(fleet: Fleet, out: Console) -> None:
    for path, why in fleet.problems[:10]:
        put(out, Text(clean(f"not judged: {path}: {why}"), style="yellow"))
    if len(fleet.problems) > 10:
        put(out, Text(f"and {len(fleet.problems) - 10:,} more that were not judged", style="yellow"))
    for note in fleet.notes:
        put(out, Text(clean(note), style="yellow"))


def _table(members: Sequence[Member], *, wide: bool) -> Table:
    table = plain_table()
    table.show_header = True
    titles = ["", "run", "leading cause", "best score", "done"] + (["rate", "time", "format"] if wide else [])
    for title in titles:
        table.add_column(Text(title, style="dim"), no_wrap=title in ("", "done", "rate", "time"), overflow="fold")
    for member in members:
        row = member.row
        cells = [_verdict(member), Text(member.label), _cause(member), Text(_score(member)), Text(_done(member))]
        if wide:
            lasted = duration(row.seconds) if row.seconds else ""
            cells += [Text(num(row.lr) if row.lr is not None else ""), Text(lasted), Text(row.framework.split(",")[0])]
        table.add_row(*cells)
    return table


def _verdict(member: Member) -> Text:
    row = member.row
    return Text(f"{SIGNS[row.verdict]} {row.words.upper()} {percent(row.p_ill)}", style=STYLE[row.verdict])


def _cause(member: Member) -> Text:
    row = member.row
    if row.verdict != "ill":
        return Text("")
    if not row.cause:
        return Text(row.headline, style="dim")
    return Text(f"{row.cause_title} ({percent(row.cause_share)})")


def _score(member: Member) -> str:
    row = member.row
    return "" if row.score is None else f"{row.score_name} {num(row.score)}"


def _done(member: Member) -> str:
    row = member.row
    share = f"{100 * row.progress:.0f} %" if row.progress is not None else ""
    return f"{share} {row.state}".strip() if row.state in ("crashed", "running") else share
