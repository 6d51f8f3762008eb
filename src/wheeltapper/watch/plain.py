"""Watching in lines of text: what happened, and now and then how things stand. For pipes, files and small terminals."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import IO, Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from wheeltapper.report.terminal import SIGNS, STYLE, console
from wheeltapper.report.text import clean, duration, num, plural, position
from wheeltapper.watch.incidents import Incident
from wheeltapper.watch.notify import Notifier
from wheeltapper.watch.watcher import Watched, Watcher

HEARTBEAT = 600.0  # seconds between lines about how things stand, where nothing happens


def follow_lines(
    watcher: Watcher,
    out: IO[str],
    *,
    interval: float,
    until_done: bool,
    notifier: Notifier,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """One line for each thing that happens, one about each run when its verdict changes, and a heartbeat."""
    said: dict[str, str] = {}
    waiting: dict[Any, str] = {}
    last = 0.0
    while True:
        new = watcher.look()
        now = time.monotonic()
        lines = [i.line for i in new]
        for path, why in watcher.waiting.items():
            if waiting.get(path) != why:
                lines.append(f"… {clean(why)}; waiting")
        waiting = dict(watcher.waiting)
        beat = now - last >= HEARTBEAT
        for key, run in watcher.runs.items():
            word = f"{run.diagnosis.verdict if run.diagnosis else ''} {run.state}"
            if beat or said.get(key) != word:
                lines.append(_standing(run, watcher))
                said[key] = word
        last = now if beat else last
        lines += notifier.send(new)
        stamp = time.strftime("%H:%M:%S")
        for line in lines:
            out.write(f"{stamp} {line}\n")
        out.flush()
        if until_done and watcher.done:
            return
        sleep(watcher.pause(interval))


def follow_live(watcher: Watcher, *, interval: float, until_done: bool, notifier: Notifier, color: bool | None) -> None:
    """A table that is drawn over itself: the dashboard for who has no Textual."""
    out = console(color=color)
    with Live(Text("reading ..."), console=out, auto_refresh=False) as live:
        while True:
            new = watcher.look()
            for problem in (*(i.line for i in new), *notifier.send(new)):
                live.console.print(Text(f"{time.strftime('%H:%M:%S')} {problem}"))
            live.update(overview(watcher), refresh=True)
            if until_done and watcher.done:
                return
            time.sleep(watcher.pause(interval))


def overview(watcher: Watcher) -> RenderableType:
    """All runs in a table."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("", "run", "state", "at", "left", "headline"):
        table.add_column(column, no_wrap=column not in ("run", "headline"), overflow="fold")
    for run in watcher.runs.values():
        told = run.diagnosis
        mark = Text(f"{SIGNS[told.verdict]} {told.verdict.replace('-', ' ')}", style=STYLE[told.verdict]) if told else Text("?")
        left = run.seconds_left()
        table.add_row(
            mark, Text(clean(run.name, 60)), Text(run.state), Text(place(run)),
            Text(duration(left) if left is not None else ""), Text(clean(told.headline) if told else ""),
        )  # fmt: skip
    waits = [Text(f"… {why}; waiting", style="dim") for why in watcher.waiting.values()]
    return Group(table, *waits)


def place(run: Watched) -> str:
    """How far it came."""
    progress = run.diagnosis.progress if run.diagnosis else None
    if progress is None or progress.at is None:
        return ""
    share = f" of {num(progress.total)} ({100 * progress.at / progress.total:.0f} %)" if progress.total else ""
    return position(progress.at, progress.clock) + share


def once_text(watcher: Watcher, new: list[Incident], changed: list[Watched], *, fresh: bool) -> str:
    """What a call of --once says: everything the first time, then only what is new (nothing, if nothing is)."""
    lines = [i.line for i in new]
    lines += [_standing(run, watcher) for run in changed]
    if fresh:
        lines += [f"… {why}" for why in watcher.waiting.values()]
        if watcher.runs:
            lines.append(f"{plural(len(watcher.runs), 'run')} under watch; from now on only what is new is said.")
    return "\n".join(lines)


def _standing(run: Watched, watcher: Watcher) -> str:
    mark = SIGNS[run.diagnosis.verdict] if run.diagnosis else "?"
    return f"{mark} {clean(run.name, 80)}: {run.status(watcher.target)}"
