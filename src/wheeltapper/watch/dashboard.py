"""The dashboard: runs at the left, the chosen one at the right, what happened below. Needs Textual (extra `watch`).

A thread looks at the runs; the screen is drawn from copies, so that a slow look never holds up a key. All text from a
run enters as Text, never as markup.
"""

from __future__ import annotations

import threading
import time
from copy import copy
from typing import ClassVar

import numpy as np
from rich.console import Group
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, Static

from wheeltapper.finding import Unknown
from wheeltapper.judge.model import SOMETHING_ELSE
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.report.terminal import SIGNS, detail, first_screen
from wheeltapper.report.text import clean, duration, num, plural, position
from wheeltapper.report.view import VERDICT_WORDS, view_of
from wheeltapper.run.model import Series
from wheeltapper.watch.chart import DARK, LIGHT, Band, Look, Plot, draw
from wheeltapper.watch.incidents import Incident
from wheeltapper.watch.notify import Notifier
from wheeltapper.watch.plain import place
from wheeltapper.watch.watcher import Watched, Watcher, main_series

COLORS = {"sound": "#3fb950", "ill": "#f85149", "cannot-tell": "#d29922"}
LIGHT_COLORS = {"sound": "#1a7f37", "ill": "#cf222e", "cannot-tell": "#9a6700"}
KIND_STYLE = {"alarm": "ill", "guard": "ill", "early": "cannot-tell", "crashed": "ill", "silent": "cannot-tell", "withdrawn": "sound", "finished": "sound", "target": "sound"}
MOST_INCIDENTS = 200
WIDE = 100  # columns below which the list of runs is narrow
TWO_CHARTS = 26  # lines of screen below which one chart is shown


class Curve(Widget):
    """One series, drawn anew whenever its place changes size."""

    DEFAULT_CSS = "Curve { height: 1fr; min-height: 6; }"

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.series: Series | None = None
        self.run: Watched | None = None
        self.log_scale = False
        self.target: float | None = None

    def show(self, run: Watched | None, series: Series | None, target: float | None) -> None:
        self.run, self.series, self.target = run, series, target
        self.refresh()

    def render(self) -> Group | Text:
        if self.series is None or self.run is None:
            return Text("")
        look: Look = DARK if self.app.current_theme.dark else LIGHT
        plot = plot_of(self.run, self.series, target=self.target, log=self.log_scale)
        lines = draw(plot, self.size.width, max(3, self.size.height - 1), look)
        last = num(float(self.series.values[-1])) if len(self.series) else "–"
        head = Text.assemble((clean(self.series.name, 60), "bold"), f"  {last}")
        head.append(f"  {'log scale' if self.log_scale else ''}", style=look.axis)
        return Group(head, *lines)


def plot_of(run: Watched, series: Series, *, target: float | None = None, log: bool = False) -> Plot:
    """The curve with its forecast, its alarms and its planned end, as far as they stand on its clock."""
    told, outlook = run.diagnosis, run.outlook
    band = None
    if isinstance(outlook, Forecast) and outlook.series == series.name and outlook.clock == series.clock:
        band = Band(*(np.asarray(track) for track in (outlook.at, outlook.low, outlook.middle, outlook.high)))
    onsets = tuple(
        f.onset
        for f in (told.findings if told else ())
        if f.severity == "ill" and f.onset is not None and f.clock == series.clock and f.series in (None, series.name)
    )
    return Plot(series.at, series.values, band, target, onsets, log=log)


class Report(ModalScreen[None]):
    """The whole diagnosis of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,d,enter", "dismiss", "Back")]
    DEFAULT_CSS = """
    Report { align: center middle; }
    Report VerticalScroll { width: 94%; height: 92%; background: $surface; border: round $primary; padding: 1 2; }
    """

    def __init__(self, run: Watched) -> None:
        super().__init__()
        self._run = run

    def compose(self) -> ComposeResult:
        told = self._run.diagnosis
        with VerticalScroll():
            if told is None:
                yield Static(Text("It was not judged yet."))
            else:
                view = view_of(told)
                yield Static(Group(first_screen(view), detail(view)))


class Dashboard(App[None]):
    """`Dashboard(watcher, ...).run()` blocks until the user leaves."""

    TITLE = "wheeltapper watch"
    CSS = """
    #top { height: 1; padding: 0 1; background: $panel; }
    #runs { width: 36; height: 1fr; overflow-x: hidden; }
    #runs.narrow { width: 25; }
    #runs.alone { display: none; }
    #detail { padding: 0 1; }
    #verdict { height: auto; max-height: 5; padding: 0 0 1 0; }
    #facts { height: auto; padding: 0 0 1 0; }
    #second.hidden { display: none; }
    #log { height: auto; max-height: 9; border-top: solid $panel; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("d", "report", "Diagnosis"),
        Binding("j", "move(1)", "Next"),
        Binding("k", "move(-1)", "Previous", show=False),
        Binding("c", "curve", "Curve"),
        Binding("l", "log", "Log"),
        Binding("r", "look", "Look"),
        Binding("t", "ground", "Theme"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, watcher: Watcher, *, interval: float, until_done: bool, notifier: Notifier, light: bool = False
    ) -> None:
        super().__init__()
        self.theme = "textual-light" if light else "textual-dark"
        self._watcher = watcher
        self._interval, self._until_done, self._notifier = interval, until_done, notifier
        self._wake, self._leave = threading.Event(), threading.Event()
        self._runs: dict[str, Watched] = {}
        self._chosen: str | None = None
        self._curve = 0  # which series the first chart shows
        self._said: list[Incident] = []
        self._waiting: list[str] = []
        self._next_look = 0.0
        self.looks = 0

    # ------------------------------------------------------------ the screen

    def compose(self) -> ComposeResult:
        yield Static(id="top")
        with Horizontal():
            yield DataTable(id="runs", cursor_type="row", show_header=False, zebra_stripes=False)
            with Vertical(id="detail"):
                yield Static(id="verdict")
                yield Static(id="facts")
                yield Curve(id="first")
                yield Curve(id="second")
        yield VerticalScroll(Static(id="said"), id="log")
        yield Footer()

    def on_mount(self) -> None:
        self.query_one("#runs", DataTable).add_columns("run")
        self._draw()
        self.set_interval(1.0, self._draw_top)
        self.run_worker(self._look_on, thread=True, exclusive=True)

    def on_unmount(self) -> None:
        self._leave.set()
        self._wake.set()

    def on_resize(self, event: Resize) -> None:
        self.query_one("#second").set_class(event.size.height < TWO_CHARTS, "hidden")
        self.query_one("#runs").set_class(event.size.width < WIDE, "narrow")

    # ------------------------------------------------------------ the thread that looks

    def _look_on(self) -> None:
        while not self._leave.is_set():
            new = self._watcher.look()
            problems = self._notifier.send(new)
            runs = {key: copy(run) for key, run in self._watcher.runs.items()}
            waiting = list(self._watcher.waiting.values())
            pause = self._watcher.pause(self._interval)
            if self._leave.is_set():
                return
            self.call_from_thread(self._show, runs, new, waiting, problems, pause)
            self._wake.wait(pause)
            self._wake.clear()

    def _show(
        self, runs: dict[str, Watched], new: list[Incident], waiting: list[str], problems: list[str], pause: float
    ) -> None:
        self._runs, self._waiting = runs, waiting
        self._said = [*self._said, *new][-MOST_INCIDENTS:]
        self._next_look = time.monotonic() + pause
        self.looks += 1
        for problem in problems:
            self.notify(clean(problem), severity="warning", markup=False)
        self._draw()
        if self._until_done and self._watcher.done:
            self.exit()

    # ------------------------------------------------------------ drawing

    def _draw(self) -> None:
        if self._chosen not in self._runs:
            self._chosen = next(iter(self._ordered()), None)
        self._draw_top()
        self._draw_list()
        self._draw_detail()
        said = Text("\n").join(self._line(i) for i in reversed(self._said)) if self._said else Text("nothing has happened yet", style="dim")
        self.query_one("#said", Static).update(said)

    def _ordered(self) -> list[str]:
        """Ill runs first, then those that cannot be told, then by name."""
        rank = {"ill": 0, "cannot-tell": 1, "sound": 2}

        def order(key: str) -> tuple[int, str]:
            told = self._runs[key].diagnosis
            return (rank[told.verdict] if told else 1, self._runs[key].name)

        return sorted(self._runs, key=order)

    def _color(self, verdict: str) -> str:
        return (COLORS if self.current_theme.dark else LIGHT_COLORS)[verdict]

    def _mark(self, run: Watched) -> Text:
        verdict = run.diagnosis.verdict if run.diagnosis else "cannot-tell"
        return Text(SIGNS[verdict], style=f"bold {self._color(verdict)}")

    def _draw_top(self) -> None:
        verdicts = [run.diagnosis.verdict for run in self._runs.values() if run.diagnosis]
        line = Text.assemble(("wheeltapper watch", "bold"), f"  {plural(len(self._runs), 'run')}")
        for verdict in ("ill", "cannot-tell", "sound"):
            count = verdicts.count(verdict)
            if count:
                line.append(f"  {SIGNS[verdict]} {count}", style=f"bold {self._color(verdict)}")
        for why in self._waiting[:2]:
            line.append(f"  … {why}", style="italic")
        wait = max(0.0, self._next_look - time.monotonic())
        line.append(f"  next look in {duration(wait)}" if self.looks else "  reading ...", style="dim")
        self.query_one("#top", Static).update(line)

    def _draw_list(self) -> None:
        table = self.query_one("#runs", DataTable)
        table.set_class(len(self._runs) < 2, "alone")
        keys = self._ordered()
        shown = [str(row.value) for row in table.rows]
        if shown != keys:
            table.clear()
            for key in keys:
                table.add_row("", key=key, height=2)
        column = next(iter(table.columns))
        for key in keys:
            run = self._runs[key]
            text = Text.assemble(self._mark(run), " ", (clean(run.name, 30), "bold"))
            text.append(f"\n  {short_place(run)}{'' if run.state == 'running' else f'  {run.state}'}", style="dim")
            table.update_cell(key, column, text, update_width=True)
        if self._chosen in keys and keys:
            table.move_cursor(row=keys.index(self._chosen))

    def _draw_detail(self) -> None:
        run = self._runs.get(self._chosen or "")
        verdict, facts = self.query_one("#verdict", Static), self.query_one("#facts", Static)
        if run is None:
            why = "; ".join(self._waiting) or "reading ..."
            verdict.update(Text(f"… {why}" if self.looks else "reading ...", style="dim"))
            facts.update("")
            return
        told = run.diagnosis
        head = Text.assemble(self._mark(run), " ")
        if told:
            head.append(VERDICT_WORDS[told.verdict].upper(), style=f"bold {self._color(told.verdict)}")
        head.append(f"  {clean(run.name, 80)}", style="bold")
        if told:
            head.append(f"\n{clean(told.headline, 300)}")
            if told.verdict == "ill" and told.causes and told.causes[0].probability > 0.5 and told.causes[0].id != SOMETHING_ELSE:
                head.append(f"\nMost likely: {clean(told.causes[0].title)} ({100 * told.causes[0].probability:.0f} %)", style="italic")
        verdict.update(head)
        facts.update(self._facts(run))
        curves = curves_of(run, self._goal_series(run))
        for offset, name in enumerate(("first", "second")):
            chart = self.query_one(f"#{name}", Curve)
            series = curves[(self._curve + offset) % len(curves)] if len(curves) > offset else None
            target = run.outlook.target if isinstance(run.outlook, Forecast) else None
            chart.show(run, series, target if series is not None and series is self._goal_series(run) else None)

    def _goal_series(self, run: Watched) -> Series | None:
        return run.run.series_named(self._watcher.target.name) if self._watcher.target else None

    def _facts(self, run: Watched) -> Text:
        left = run.seconds_left()
        lr = run.study.maybe("lr")
        cells = [
            ("at", place(run) or "–"),
            ("left", duration(left) if left is not None else "–"),
            ("lr", num(float(lr.values[-1])) if lr is not None and len(lr) else "–"),
            ("written", f"{duration(max(0.0, time.time() - run.grown))} ago" if not run.done else run.state),
        ]
        line = Text("   ").join(_cell(name, value) for name, value in cells)
        target = self._watcher.target
        if target is not None:
            line.append("\n").append(_cell(f"chance of {clean(target.name, 24)} {num(target.value)}:", run.chance(target)[1]))
        elif isinstance(run.outlook, Forecast):
            last = len(run.outlook.at) - 1
            words = f"{num(run.outlook.middle[last])} ({num(run.outlook.low[last])} to {num(run.outlook.high[last])})"
            line.append("\n").append(_cell(f"expected {clean(run.outlook.series, 24)} at {position(run.outlook.at[last], run.outlook.clock)}:", words))
        elif isinstance(run.outlook, Unknown):
            line.append(f"\nno forecast: {clean(run.outlook.why, 120)}", style="dim")
        return line

    def _line(self, incident: Incident) -> Text:
        style = self._color(KIND_STYLE[incident.kind]) if incident.kind in KIND_STYLE else ""
        stamp = time.strftime("%H:%M:%S", time.localtime(incident.seen))
        return Text.assemble((f"{stamp} ", "dim"), (incident.line, style))

    # ------------------------------------------------------------ keys

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        key = event.row_key.value if event.row_key else None
        if key in self._runs and key != self._chosen:
            self._chosen, self._curve = key, 0
            self._draw_detail()

    def on_data_table_row_selected(self, _event: DataTable.RowSelected) -> None:
        self.action_report()

    def action_move(self, by: int) -> None:
        keys = self._ordered()
        if keys and self._chosen in keys:
            self._chosen = keys[(keys.index(self._chosen) + by) % len(keys)]
            self._curve = 0
            self._draw()

    def action_report(self) -> None:
        run = self._runs.get(self._chosen or "")
        if run is not None:
            self.push_screen(Report(run))

    def action_curve(self) -> None:
        self._curve += 1
        self._draw_detail()

    def action_log(self) -> None:
        for chart in self.query(Curve):
            chart.log_scale = not chart.log_scale
            chart.refresh()

    def action_look(self) -> None:
        self._wake.set()

    def action_ground(self) -> None:
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"
        self._draw()


def _cell(name: str, value: str) -> Text:
    return Text.assemble((f"{name} ", "dim"), value)


def short_place(run: Watched) -> str:
    """How far it came, in few characters."""
    progress = run.diagnosis.progress if run.diagnosis else None
    if progress is None or progress.at is None:
        return "–"
    share = f"{100 * progress.at / progress.total:.0f} %  " if progress.total else ""
    return share + position(progress.at, progress.clock)


def curves_of(run: Watched, target: Series | None) -> list[Series]:
    """The series that can be shown: the target's, the main ones, the learning rate, then the rest."""
    first = [target] if target is not None else []
    if isinstance(run.outlook, Forecast) and run.outlook.series in run.run.series:
        first.append(run.run.series[run.outlook.series])
    lr = run.study.maybe("lr")
    ordered = [*first, *main_series(run.study), *([lr] if lr is not None else []), *run.run.series.values()]
    return list({s.name: s for s in ordered}.values())
