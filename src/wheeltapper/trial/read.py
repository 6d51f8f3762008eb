"""A trial read back from its folder, and the trials that lie in or beside a run, for the diagnosis."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from wheeltapper.errors import InputError
from wheeltapper.finding import Evidence, Place
from wheeltapper.remedy import case_file
from wheeltapper.run.model import Run
from wheeltapper.trial.ledger import LEDGER_FILE, Books, Record, books_of, read_ledger
from wheeltapper.trial.model import Rule, Verdict
from wheeltapper.trial.plan import TrialPlan, plan_from

WHICH_FOLDER = "Name the folder that `wheeltapper trial -o DIR` wrote."
MOST_TRIALS = 50  # ledgers looked at beside one run


@dataclass(frozen=True, slots=True)
class Trial:
    """What a ledger tells. Reading takes no lock: a trial can be looked at while it runs."""

    folder: Path
    plan: TrialPlan
    books: Books
    records: tuple[Record, ...]


def read_trial(folder: Path) -> Trial:
    """The trial in a folder."""
    records = list(read_ledger(folder / LEDGER_FILE))
    return Trial(folder, plan_in(records, folder), books_of(records), tuple(records))


def plan_in(records: Sequence[Record], folder: Path) -> TrialPlan:
    first = next((r for r in records if r["kind"] == "plan"), None)
    if first is None:
        raise InputError(f"{folder} holds no trial.", do=WHICH_FOLDER)
    try:
        return plan_from(first["plan"])
    except msgspec.ValidationError as error:
        raise InputError(f"the plan in {folder / LEDGER_FILE} is of another version: {error}") from None


def trials_of(run: Run) -> list[Trial]:
    """Trials of this run that lie in its folder or beside it."""
    root = Path(run.root)
    home = root if root.is_dir() else root.parent
    out = []
    for folder in _folders_near(home.resolve()):
        with contextlib.suppress(InputError, OSError, KeyError, TypeError, ValueError, AttributeError):
            # What is suppressed is another program's ledger, or one of a later version.
            trial = read_trial(folder)
            same = Path(trial.plan.run).resolve() in (home.resolve(), root.resolve())
            if same and trial.plan.name == run.name:
                out.append(trial)
    return out


def _folders_near(home: Path) -> list[Path]:
    """Folders with a ledger: in the run's own folder any, beside it and where we are those that begin with trial."""
    found: dict[Path, None] = {}
    for place, start in ((home, ""), (home.parent, "trial"), (Path.cwd(), "trial")):
        with contextlib.suppress(OSError):
            found |= dict.fromkeys(Path(p) for p in _folders_in(str(place), place.stat().st_mtime_ns, start))
    return list(found)[:MOST_TRIALS]


@lru_cache(maxsize=64)
def _folders_in(place: str, _changed: int, start: str) -> tuple[str, ...]:
    """Looked up once for thousands of runs in one folder; a new trial changes the folder's own time."""
    entries = (e for e in os.scandir(place) if e.name.startswith(start) and e.is_dir())
    return tuple(sorted(e.path for e in entries if os.path.isfile(os.path.join(e.path, LEDGER_FILE))))


def tried(run: Run) -> tuple[tuple[str, Evidence], ...]:
    """(cause, evidence) of every trial of this run that reached a verdict."""
    out = []
    for trial in trials_of(run):
        for cause, verdict in causes_in(trial).items():
            if verdict.answer != "cannot-tell":
                out.append((cause, evidence_of(verdict, trial.plan.rule, trial.folder)))
    return tuple(out)


def causes_in(trial: Trial) -> dict[str, Verdict]:
    """What a trial says about each cause. Confirmed at any dose is confirmed; refuted is only what is so at all."""
    out: dict[str, Verdict] = {}
    verdicts = trial.books.verdicts
    for arm in trial.plan.tried:
        if arm.cause is None or arm.kind != "remedy" or arm.id not in verdicts:
            continue
        verdict = verdicts[arm.id]
        for other in trial.plan.tried:
            if other.after == arm.id and verdict.answer == "refuted":
                more = verdicts.get(other.id)
                undecided = Verdict("cannot-tell", f"{verdict.why} A larger change was not decided.", verdict.pairs)
                verdict = undecided if more is None else more if more.answer != "cannot-tell" else undecided
        out[arm.cause] = verdict
    return out


def tried_in(trial: Trial, date: str) -> case_file.Attempt:
    """A trial as an entry of a case file: what each cause came to, and the edits that were tried."""
    verdicts = tuple(
        case_file.Verdict(cause, verdict.answer.upper().replace("-", " "), verdict.why)
        for cause, verdict in causes_in(trial).items()
    )
    edits = tuple(case_file.Change(e.knob, e.old, e.new) for arm in trial.plan.tried for e in arm.edits)
    source = next(iter(trial.plan.hashes.get("config", {}).values()), None) or ""
    return case_file.Attempt("trial", date, trial.plan.run, source, trial.plan.headline, "", edits, verdicts)


def evidence_of(verdict: Verdict, rule: Rule, folder: Path) -> Evidence:
    """A verdict in bits, by the error rates that its rule states: log2 of right over wrong.

    confirmed: (1 - beta) / alpha = 4.2 bits for 0.05 and 0.05. refuted: a true cause is refuted with chance beta at
    most, a wrong one hardly ever not: log2(beta / (1 - alpha)).
    """
    if verdict.answer == "confirmed":
        bits, word = math.log2((1 - rule.beta) / rule.alpha), "a trial confirmed it"
    else:
        bits, word = math.log2(rule.beta / (1 - rule.alpha)), "a trial refuted it"
    return Evidence(round(bits, 1), f"{word}: {verdict.why}", "trial", (Place(file=str(folder / LEDGER_FILE)),))
