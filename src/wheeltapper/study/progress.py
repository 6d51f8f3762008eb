"""How far the run came: planned length, where the record stops, whether it crashed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from wheeltapper.program.reading import read_code
from wheeltapper.program.settings import settings_of
from wheeltapper.reading.record import Floats
from wheeltapper.run.model import Event, Run
from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import configs_among
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.settings.vocabulary import themes_of
from wheeltapper.study import Absent, derived

State = Literal["finished", "crashed", "stopped", "unknown"]
AFTER = 5  # lines: other processes of the same launch still print their last rows
LOGGED = {"rl": {"return", "policy_loss", "value_loss", "exploration", "td_error"}, "gan": {"gan_d", "gan_g"}, "vae": {"elbo"}}
LATER = 2  # positions: one row may be an evaluation that ended meanwhile


@dataclass(frozen=True, slots=True)
class Progress:
    state: State
    clock: str | None
    at: float | None
    total: float | None
    text: str
    crash: Event | None = None

    @property
    def share(self) -> float | None:
        if self.at is None or not self.total:
            return None
        return self.at / self.total


@derived
def progress(run: Run, knobs: Knobs | None = None) -> Progress:
    """Where the record stops against what was planned."""
    ends: dict[str, float] = {}
    for s in run.series.values():
        for clock in ("step", "epoch", "micro_step", "sample"):
            track = s.on(clock)
            if track is not None and len(track) and np.any(np.isfinite(track)):
                ends[clock] = max(ends.get(clock, -np.inf), float(np.nanmax(track)))
    crash = last_crash(run)
    fatal: State = "stopped" if crash is not None and by_hand(crash) else "crashed"
    said_end = any(e.kind == "end" for e in run.events)
    for clock, fact, knob in (("step", "total_steps", "run.total_steps"), ("epoch", "total_epochs", "run.epochs")):
        total = run.fact(fact)
        if total is None and knobs is not None:
            total = knobs.value(knob)
        if clock not in ends or not isinstance(total, (int, float)) or isinstance(total, bool) or total <= 0:
            continue
        at, total = ends[clock], float(total)
        # Counting from zero and stopping one log interval early both count as the end.
        gap = _log_gap(run, clock)
        if at >= total - max(gap, 1.0):
            state: State = "finished"
        elif crash is not None:
            state = fatal
        else:
            state = "finished" if said_end else "stopped"
        words = {"finished": "finished", "crashed": "crashed", "stopped": "the record stops", "unknown": ""}[state]
        if state == "finished" and at < total - max(gap, 1.0):
            words = "the log says that it ended"
        return Progress(state, clock, at, total, f"{words} at {clock} {round(at, 2):,.10g} of {total:,.10g}", crash)
    if not ends:
        return Progress(fatal if crash else "unknown", None, None, None, "the record gives no position", crash)
    clock = "step" if "step" in ends else next(iter(ends))
    state = fatal if crash else "finished" if said_end else "unknown"
    text = f"the record reaches {clock} {round(ends[clock], 2):,.10g}; the planned length is not known"
    return Progress(state, clock, ends[clock], None, text, crash)


def last_crash(run: Run) -> Event | None:
    """The traceback, kill or lack of memory that ended the run; None where training went on after each of them."""
    fatal = [e for e in run.events if e.kind in ("crash", "oom")]
    return next((e for e in reversed(fatal) if not _went_on(run, e)), None)


def by_hand(crash: Event) -> bool:
    """Stopped by somebody: Ctrl-C, or a job that was cancelled before its time was over."""
    return "KeyboardInterrupt" in crash.text or ("CANCELLED" in crash.text and "TIME LIMIT" not in crash.text)


def _went_on(run: Run, crash: Event) -> bool:
    """Rows follow it in its own file (more than the few lines that other processes still print), or other files, of a
    later launch, reach further than the logging interval of the file that ends in it can explain."""
    own: list[Floats] = []
    others: list[Floats] = []
    for s in run.series.values():
        here = np.asarray([file == crash.file for file in s.files], dtype=bool)[s.file_of]
        if np.any(s.lines[here] > crash.line + AFTER):
            return True
        track = s.on(crash.clock) if crash.clock is not None else None
        if track is not None:
            own.append(track[here & np.isfinite(track)])
            others.append(track[~here & np.isfinite(track)])
    mine = np.unique(np.concatenate(own)) if own else np.empty(0)
    if crash.at is None or not len(mine):
        return False
    reach = max(crash.at, float(mine[-1])) + 2 * float(np.median(np.diff(mine)) if len(mine) > 1 else 1.0)
    return len(np.unique(np.concatenate(others)[np.concatenate(others) > reach])) >= LATER


def _log_gap(run: Run, clock: str) -> float:
    gaps = []
    for s in run.series.values():
        track = s.on(clock)  # type: ignore[arg-type]
        if track is not None and len(track) > 2:
            steps = np.diff(track[np.isfinite(track)])
            steps = steps[steps > 0]
            if len(steps):
                gaps.append(float(np.median(steps)))
    return min(gaps) if gaps else 1.0


@derived
def knobs(run: Run) -> Knobs:
    """The settings by meaning, whatever the framework spells them. What no configuration sets is taken from the script beside
    the log, defaults of options too: a command line that nobody kept may have set others, which the note of the setting says."""
    trees = (*run.configs, *configs_among(run.scripts))
    about = themes_of([s.raw for s in run.series.values()]) | _logged_themes(run)
    found = read_knobs(trees, run_formats=run.formats, about=about) if trees else None
    coded = _settings_in_code(run)
    said = read_knobs([coded], dialect="generic", about=about) if coded is not None else None
    if said is not None and _outlasts(run, said):
        said = None
    if found is not None:
        return found if said is None else found.completed(said)
    if said is None:
        raise Absent("no configuration was found", ("the config file or the command line",))
    return said


def _logged_themes(run: Run) -> frozenset[str]:
    """What the logged numbers say the training is about."""
    logged = {s.quantity for s in run.series.values() if len(s) > 1}
    return frozenset(theme for theme, telling in LOGGED.items() if logged & telling)


def _outlasts(run: Run, said: Knobs) -> bool:
    """The log goes on beyond the epochs that the script has: then it is another script, or another state of it, that ran."""
    epochs = said.value("run.epochs")
    tracks = [track for s in run.series.values() if (track := s.on("epoch")) is not None and len(track)]
    last = max((float(np.nanmax(track)) for track in tracks if np.isfinite(track).any()), default=0.0)
    return epochs is not None and last > float(epochs) + 1


def _settings_in_code(run: Run) -> ConfigTree | None:
    if not run.scripts:
        return None
    try:
        programs = [code for code in read_code(run.scripts, run.configs)[0] if code.trains]
        tree = settings_of(programs[0], sure=False) if len(programs) == 1 else None  # of several, which one ran is not known
    except RecursionError:  # as in the audit: calls that call each other are not bounded
        return None
    return tree if tree is not None and len(tree) else None
