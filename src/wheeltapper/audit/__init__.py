"""Declared against effective: config, code and simulators joined into what a run will really do.

`audit(paths)` reads configs, scripts, launch scripts and folders; `audit_run(run)` does the same for what lies beside
a log. Nothing is executed. Findings are graded: "is" is decided by arithmetic, by the framework's own schema or by the
code; "suspected" is worth a look.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from wheeltapper.audit.arithmetic import arithmetic
from wheeltapper.audit.from_code import code_rows, settle_batch
from wheeltapper.audit.length import UNKNOWN, length_of
from wheeltapper.audit.linking import Link, links_of
from wheeltapper.audit.model import AuditReport, Row
from wheeltapper.audit.several import others_differ
from wheeltapper.audit.table import rows_of
from wheeltapper.errors import InputError, NothingToRead
from wheeltapper.finding import Finding, Unknown
from wheeltapper.limits import Failure, guarded
from wheeltapper.program.averages import is_ramped
from wheeltapper.program.checks import run_checks
from wheeltapper.program.launch import launch_tree
from wheeltapper.program.reading import Code, read_code
from wheeltapper.program.scripts import Launch
from wheeltapper.reading.record import Fact
from wheeltapper.run.model import Run
from wheeltapper.settings.check import check_config
from wheeltapper.settings.dialects.schema import Problem
from wheeltapper.settings.knobs import Knobs, read_knobs
from wheeltapper.settings.parse import configs_among, parse_file
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.simulate.ema import first_copy_weight
from wheeltapper.simulate.plan_from_knobs import planned_lr

__all__ = ["AuditReport", "Link", "Row", "audit", "audit_run"]

CONFIGS = {".yaml", ".yml", ".toml", ".json"}
CODE = {".py", ".sh", ".bash", ".slurm", ".sbatch"}
MOST_FILES = 500
SECONDS = 120.0  # CPU time of one part of an audit
T = TypeVar("T")
# What breaks a run outright, or makes it another run than was asked for; the rest is worth knowing.
BREAKS = {"unknown-key", "wrong-place", "wrong-type", "string-number", "missing", "syntax"}


def audit(paths: Iterable[str | Path]) -> AuditReport:
    """What a run made of these files would really do."""
    given = [Path(p) for p in paths]
    for path in given:
        if not path.exists():
            raise InputError(
                f"there is no file or folder {path}.", do="Give a config, a script, a launch script or a folder."
            )
    files = [file for path in given for file in _files(path)]
    trees = [
        tree
        for file in files
        if file.suffix.lower() in CONFIGS and _may_set(file) and (tree := parse_file(file)) is not None and len(tree)
    ]
    trees += configs_among(files)
    scripts = [file for file in files if file.suffix.lower() in CODE]
    if not trees and not scripts:
        raise NothingToRead(
            f"{', '.join(map(str, given))} holds no config and no script.",
            do="Give a config, a script, a launch script or a folder.",
        )
    subject = ", ".join(path.name or str(path) for path in given)
    with _uncollected():
        report = _audit(subject, trees, scripts, {}, (), files)
    more = sum(_count(path) for path in given) - len(files)
    if more > 0:
        text = f"{more:,} more files were not looked at: only the first {MOST_FILES:,} of a folder are"
        report = replace(report, notes=(*report.notes, text))
    return report


@contextmanager
def _uncollected() -> Iterator[None]:
    """A syntax tree is millions of objects that live to the end: the collector that walks them again and again takes a
    fifth of the time, and finds nothing."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def audit_run(run: Run) -> AuditReport:
    """The audit of what lies beside a run's log: its configs, its scripts, and the facts it printed."""
    return _audit(
        run.name,
        [*run.configs, *configs_among(run.scripts)],
        [Path(s) for s in run.scripts],
        run.facts,
        run.formats,
        [Path(f) for f in run.files],
        run,
    )


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else _all_files(path)[:MOST_FILES]


def _count(path: Path) -> int:
    return 1 if path.is_file() else len(_all_files(path))


def _all_files(path: Path) -> list[Path]:
    return [
        f
        for f in sorted(path.rglob("*"))
        if f.is_file() and f.suffix.lower() in CONFIGS | CODE and not _hidden(f, path)
    ]


def _may_set(file: Path) -> bool:
    """Not data: a JSON list sets nothing, and may be long."""
    if file.suffix.lower() != ".json":
        return True
    with file.open("rb") as opened:
        return not opened.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _hidden(file: Path, top: Path) -> bool:
    parts = file.relative_to(top).parts
    return any(
        (part.startswith(".") and part != ".hydra") or part in ("node_modules", "site-packages", "__pycache__")
        for part in parts
    )


def _audit(
    subject: str,
    trees: list[ConfigTree],
    scripts: Sequence[Path],
    facts: Mapping[str, Fact],
    formats: Sequence[str],
    files: Sequence[Path],
    run: Run | None = None,
) -> AuditReport:
    notes: list[str] = []
    tried = _Tried(notes)
    codes, code_notes = tried.one("the scripts", lambda: read_code(scripts, tuple(trees))) or ([], ())
    notes += [f"{note.file}: {note.text}" for note in code_notes]
    links = links_of(run, codes) if run is not None else []
    strange = {link.program for link in links if not link.linked}
    notes += [f"{link.program}: not linked to this run: {link.reason}" for link in links if not link.linked]
    codes = [code for code in codes if code.program.entry.name not in strange]
    launches = [
        tree
        for script in scripts
        if script.suffix.lower() != ".py" and (tree := _launch(script)) is not None and len(tree)
    ]
    settings = [*trees, *(tree for tree in launches if tree.file not in {t.file for t in trees})]
    knobs = tried.one("the settings", lambda: read_knobs(settings, run_formats=formats)) if settings else None
    if knobs is not None and (told := tried.one("the settings", partial(others_differ, knobs, trees))) is not None:
        notes.append(told)
    checked = tried.many("the check of the settings", partial(check_config, trees)) if trees else []
    problems = [p for p in checked if not _read_by_code(p, codes)]
    findings = [_from_problem(p) for p in problems]
    proved: list[Finding] = []
    for code in codes:
        # The depth of code is bounded; that of calls which call each other is not.
        proved += tried.many(code.program.entry.name, partial(run_checks, code, notes))
    rows: list[Row] = []
    plan = None
    if knobs is not None:
        not_done = any(f.id == "accumulation-not-implemented" and f.grade == "is" for f in proved)
        length = tried.one("the length of the run", partial(length_of, knobs, facts, accumulates=not not_done)) or UNKNOWN
        per_epoch = int(length.steps_per_epoch) if length.steps_per_epoch else None
        planned = planned_lr(
            knobs,
            facts,
            n_updates=int(length.total) if length.total else None,
            steps_per_epoch=per_epoch,
            trees=settings,
        )
        if isinstance(planned, Unknown):
            notes.append(f"the planned learning rate is not drawn: {planned.why}")
        else:
            plan = planned
        rows = tried.many("the table", partial(rows_of, knobs, length, plan))
        computed = tried.many("the arithmetic", partial(arithmetic, knobs, length, plan))
        findings += _told_by_code(computed, proved, codes)
        proved = [_settled(f, length.total) for f in proved]
    for code in codes:
        if code.trains:
            rows = tried.one("the table", partial(settle_batch, rows, code)) or rows
            labels = {row.label for row in rows}
            rows += [row for row in tried.many("the table", partial(code_rows, code, labels)) if row not in rows]
    findings = _once([*findings, *proved])
    findings.sort(key=lambda f: (f.grade != "is", {"ill": 0, "watch": 1, "note": 2}[f.severity]))
    names = tuple(dict.fromkeys(str(f) for f in files))
    unread = dict.fromkeys([note.file for note in code_notes if note.level == "lost"] + [t.file for t in trees if not len(t)])
    return AuditReport(subject, tuple(rows), tuple(findings), tuple(notes), plan, _dialect(knobs), names, tuple(unread), tuple(links))


class _Tried:
    """Parts of an audit: one that fails on these files is a note, and the others go on."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes

    def one(self, what: str, part: Callable[[], T]) -> T | None:
        found = guarded(part, seconds=SECONDS)
        if not isinstance(found, Failure):
            return found
        self.notes.append(f"{what}: not checked: {found.text} (in {found.where})")
        return None

    def many(self, what: str, part: Callable[[], Iterable[T]]) -> list[T]:
        return self.one(what, lambda: list(part())) or []


def _told_by_code(found: Iterable[Finding], proved: Sequence[Finding], codes: Sequence[Code]) -> list[Finding]:
    """What the settings alone leave open about an average, where the code answers it: a constant decay or a ramp."""
    settled = any(f.id == "ema-horizon-too-long" for f in proved) or any(
        is_ramped(code) for code in codes if code.trains
    )
    return [f for f in found if f.id != "ema-horizon-too-long" or f.grade == "is" or not settled]


def _launch(script: Path) -> ConfigTree | None:
    """The command a launch script gives, also where it is typed into a terminal multiplexer as a string."""
    tree = parse_file(script)
    if tree is None or tree.kind is not None or tree.text is None:
        return tree
    return launch_tree(Launch(script, tree.file, tree.text))


def _read_by_code(problem: Problem, codes: Sequence[Code]) -> bool:
    """A section that the dialect calls unused, where the program itself settles it: it reads it, or the code says so."""
    if problem.id != "unused-section":
        return False
    mine = [
        code for code in codes if code.config is not None and code.config.file == problem.place.file and code.trains
    ]
    return bool(mine)


def _dialect(knobs: Knobs | None) -> str | None:
    return None if knobs is None else str(knobs.dialect.NAME)


def _from_problem(problem: Problem) -> Finding:
    text = f"{problem.text.rstrip('.')}. {problem.suggestion}" if problem.suggestion else problem.text
    certain = problem.grade == "is"
    return Finding(
        problem.id, text, "ill" if certain and problem.id in BREAKS else "watch", problem.grade, places=(problem.place,)
    )


def _settled(finding: Finding, total: float | None) -> Finding:
    """The code knows decay and interval of an average, the log the length of the run: together they decide."""
    decay, every = finding.numbers.get("decay"), finding.numbers.get("every")
    if finding.id != "ema-horizon-too-long" or finding.grade == "is" or not (decay and every and total):
        return finding
    left = first_copy_weight(decay, int(total / every))
    text = (
        f"The average (decay {decay:g}, updated every {every:g} steps) has a horizon of {every / (1 - decay):,.0f} steps in a run of "
        f"{total:,.0f}: at its end {left:.0%} of it is still the first weights."
    )
    if left < 0.05:
        return replace(finding, severity="note", grade="is", summary=text)
    return replace(finding, grade="is", summary=text, numbers={**finding.numbers, "left": left})


def _once(findings: Iterable[Finding]) -> list[Finding]:
    """Config arithmetic and the code may prove the same thing at the same place; it is told once."""
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        key = (finding.id, str(finding.places[0]) if finding.places else finding.summary)
        old = seen.get(key)
        if old is None or (old.grade != "is" and finding.grade == "is"):
            seen[key] = replace(finding)
    return list(seen.values())
