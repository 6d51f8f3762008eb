"""What the command line, notebooks and other programs call.

import wheeltapper
for diagnosis in wheeltapper.diagnose("runs/exp1"):
    print(diagnosis.verdict, diagnosis.headline)
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from os import PathLike
from pathlib import Path

from wheeltapper.audit import AuditReport, audit, audit_run
from wheeltapper.errors import InputError
from wheeltapper.finding import Finding
from wheeltapper.judge.compare import Comparison, compare_runs
from wheeltapper.judge.diagnose import LINES, diagnose_run
from wheeltapper.judge.model import Diagnosis, Lines
from wheeltapper.judge.schedule import Schedule, lay_out
from wheeltapper.places import local_path
from wheeltapper.prognosis.forecast import forecast
from wheeltapper.prognosis.goal import Goal, goal_of, toward
from wheeltapper.remedy.case_file import NAME as CASE
from wheeltapper.remedy.case_file import CaseFile, add_attempt, case_path, cases_of, followed, load_case, planned
from wheeltapper.remedy.files import write_fix
from wheeltapper.remedy.fix import Fix, make_fix
from wheeltapper.remedy.followup import Followup, follow_up
from wheeltapper.remedy.launch import PATCH, patch_of
from wheeltapper.remedy.plan import Option
from wheeltapper.remedy.plan_file import PLAN, load_plan
from wheeltapper.remedy.studied import study_of
from wheeltapper.report.notebook import register
from wheeltapper.review import Record, Review, review_claims, review_text
from wheeltapper.review.model import AnyClaim
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.settings.parse import parse_file
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.plan import TrialPlan, make_plan
from wheeltapper.trial.read import Trial, read_trial, tried, tried_in
from wheeltapper.trial.search import Differences, differences

Where = str | PathLike[str]
Progress = Callable[[str, int, int], None]  # the file, how many are done, how many there are

register()  # how objects look in a notebook

__all__ = [
    "check",
    "compare",
    "diagnose",
    "fix",
    "followup",
    "judge",
    "one_run",
    "plan_search",
    "plan_trial",
    "read",
    "review",
    "save_fix",
    "schedule",
    "trial",
]


def read(
    path: Where, *, progress: Progress | None = None, files: Sequence[Path] | None = None, within: Path | None = None
) -> list[Run]:
    """Every run at a file, a folder or a place elsewhere (places/). Raises InputError where there is none. `files`, `within`:
    as `read_runs` has them."""
    return read_runs(local_path(path), progress=progress, files=files, within=within)


def diagnose(
    path: Where, *, target: str | None = None, lines: Lines = LINES, progress: Progress | None = None
) -> list[Diagnosis]:
    """The diagnosis of every run at a file or folder; with the chance of reaching a `target` such as "val/accuracy=0.8".
    `lines`: from which probability on a run is called ill or sound."""
    goal = None if target is None else goal_of(target)
    return [judge(run, goal=goal, lines=lines) for run in read(path, progress=progress)]


def judge(
    run: Run,
    *,
    audit: tuple[Finding, ...] | None = None,
    live: bool = False,
    goal: Goal | None = None,
    lines: Lines = LINES,
) -> Diagnosis:
    """The diagnosis of one run that was read. `audit`: what `audited` gave for it before, if nothing it rests on changed.
    `live`: it still runs, so that only those signs are asked that may be. `lines`: as for `diagnose`."""
    known = audited(run) if audit is None else audit
    return _with_prognosis(diagnose_run(run, audit=known, trials=tried(run), live=live, lines=lines), goal)


def one_run(path: Where, name: str | None = None) -> Run:
    """The one run at a place, or the one of this name where it holds several. Raises InputError where it is not one."""
    return _one(path, name, "--run")


def audited(run: Run) -> tuple[Finding, ...]:
    """What its config and code declare and do not do; nothing lies beside most logs."""
    return audit_run(run).findings if run.configs or run.scripts else ()


def _with_prognosis(diagnosis: Diagnosis, goal: Goal | None = None) -> Diagnosis:
    """Where a run that is not over and not ill is going."""
    if goal is not None:
        return replace(diagnosis, prognosis=toward(study_of(diagnosis), diagnosis.findings, goal))
    if diagnosis.verdict == "ill" or diagnosis.progress.state in ("finished", "crashed") or not diagnosis.run.series:
        return diagnosis
    return replace(diagnosis, prognosis=forecast(study_of(diagnosis), diagnosis.findings))


def check(paths: Where | Iterable[Where]) -> AuditReport:
    """What a run made of these configs, scripts and folders will really do. Nothing is executed."""
    given = [paths] if isinstance(paths, str | PathLike) else paths
    return audit([Path(path) for path in given])


def compare(
    a: Where | Run, b: Where | Run | None = None, *, name_a: str | None = None, name_b: str | None = None
) -> Comparison:
    """Two runs side by side. Without `b`, `a` must hold exactly two runs, or the names say which two."""
    if b is None and not isinstance(a, Run) and name_a is None and name_b is None:
        runs = read(a)
        if len(runs) != 2:
            raise InputError(
                f"{a} holds {'one run' if len(runs) == 1 else f'{len(runs)} runs'}; a comparison takes two.",
                do=f"Give two paths, or names with --a and --b out of: {_names(runs)}.",
            )
        return compare_runs(runs[0], runs[1])
    return compare_runs(_one(a, name_a, "--a"), _one(a if b is None else b, name_b, "--b"))


def schedule(
    config: Where, run: Where | None = None, *, steps: int | None = None, steps_per_epoch: int | None = None
) -> Schedule:
    """The learning rate that a configuration plans, against the one that a run logged."""
    logged = None if run is None else _one(run, None, "--run")
    return lay_out(_one(config, None, "--run"), logged, steps=steps, steps_per_epoch=steps_per_epoch)


def fix(
    path: Where,
    *,
    option: Option | None = None,
    keep: Sequence[str] = (),
    case: Where | None = None,
    wanted: str | None = None,
    name: str | None = None,
    progress: Progress | None = None,
) -> Fix:
    """What to change after an ill run, and the plan of the next one. Nothing is written: `save_fix` does that.

    `case`: the history of earlier attempts; causes that it refutes are not offered again. `wanted`: a cause that is
    only suspected, to be tried all the same.
    """
    diagnosis = judge(_one(path, name, "--run", progress))
    history = CaseFile(1, "") if case is None else load_case(Path(case))
    found = make_fix(
        diagnosis, option=option, keep=keep, refuted=history.refuted, confirmed=history.confirmed, wanted=wanted,
        made=_today(),
    )  # fmt: skip
    earlier = [] if case is not None else cases_of(diagnosis.run)
    if not earlier:
        return found
    note = (
        f"This run is an attempt of the case in {earlier[0]}: `--case {shlex.quote(str(earlier[0]))}` goes on with it"
    )
    return replace(found, notes=(*found.notes, note))


def save_fix(fix: Fix, folder: Where, *, case: Where | None = None) -> list[Path]:
    """Write the corrected configs, plan.yaml, fix.md, fix.html and the case file into a folder of their own."""
    from wheeltapper.report.fix_view import fix_view  # the pages need jinja2, which nothing else here does
    from wheeltapper.report.html import fix_page
    from wheeltapper.report.markdown_fix import render_fix

    if fix.plan is None:
        return []
    target = Path(folder)
    view = fix_view(fix, str(target.resolve()), charts=True)
    patch = {PATCH: patch_of(fix.edited)} if fix.edited else {}
    pages = {**patch, "fix.md": render_fix(view), "fix.html": fix_page(view)}
    return write_fix(fix, target, pages, planned(fix.plan, _today()), None if case is None else Path(case))


def followup(new_run: Where, plan: Where, *, name: str | None = None, record: bool = True) -> Followup:
    """A new run held against its plan; with `record` the result is added to the case file of the plan."""
    file = Path(plan) / PLAN if Path(plan).is_dir() else Path(plan)
    promised = load_plan(file)
    result = follow_up(judge(_one(new_run, name, "--run")), promised)
    if record:
        record_followup(result, plan)
    return result


def record_followup(result: Followup, plan: Where) -> None:
    """Add what came of a plan to its case file. `plan`: where it lies, as `followup` took it. The old run itself is no
    attempt, and is not added."""
    if result.stale:
        return
    folder = Path(plan) if Path(plan).is_dir() else Path(plan).parent
    add_attempt(folder / result.plan.case, followed(result, _today()), result.plan.source.run)


def _today() -> str:
    return datetime.now().strftime("%Y-%m-%d %H:%M")


def plan_trial(path: Where, command: str | None = None, wish: Wish | None = None, *, name: str | None = None) -> TrialPlan:
    """What would be run to prove the causes of a run; nothing is started. Without a command, the one found beside the run.
    Start it with trial.driver.start_trial."""
    return make_plan(judge(_one(path, name, "--run")), str(Path(path).resolve()), command, wish or Wish())


def plan_search(
    path: Where, command: str, wish: Wish, *, name: str | None = None, good: Where | None = None
) -> tuple[TrialPlan, Differences | None]:
    """What a search among the differences from a good run would run; without `good`, among commits."""
    bad = _one(path, name, "--run")
    found = None if good is None else differences(bad, _one(good, None, "--good"), command)
    edits = () if found is None else found.edits
    return make_plan(judge(bad), str(Path(path).resolve()), command, wish, search=edits), found


def trial(folder: Where, *, case: Where | None = None) -> Trial:
    """A trial as its ledger tells it, finished or not. With `case`, what it decided is added to that case file."""
    found = read_trial(Path(folder))
    if case is not None:
        target = Path(case)
        file = target / CASE if not target.exists() and not target.suffix else case_path(target)
        add_attempt(file, tried_in(found, _today()), found.plan.name)
    return found


def _one(where: Where | Run, name: str | None, option: str, progress: Progress | None = None) -> Run:
    """The one run meant."""
    if isinstance(where, Run):
        return where
    runs = read(where, progress=progress)
    if name is not None:
        labels = _labels(runs)
        named = (
            [run for run, label in zip(runs, labels, strict=True) if name == label]
            or [run for run in runs if run.name == name]
            or [run for run, label in zip(runs, labels, strict=True) if name in label]
        )
        if not named:
            raise InputError(f"{where} holds no run named {name!r}.", do=f"It holds: {_names(runs)}.")
        runs = named
    if len(runs) != 1:
        raise InputError(
            f"{where} holds {len(runs)} runs{f' named {name!r}' if name else ''}.",
            do=f"Say which with {option} NAME, out of: {_names(runs)}.",
        )
    return runs[0]


def review(
    claims: str | Sequence[AnyClaim],
    path: Where | Run,
    *,
    configs: Sequence[Where] = (),
    name: str | None = None,
    document: str = "",
    progress: Progress | None = None,
) -> Review:
    """What the record of a run says to a written diagnosis: its text, or claims that were read from it elsewhere.
    `configs`: settings that lie elsewhere."""
    run = _one(path, name, "--run", progress)
    trees = [tree for config in configs if (tree := parse_file(Path(config))) is not None]
    report = audit_run(run)
    record = Record(judge(run, audit=report.findings), report, tuple(trees))
    if isinstance(claims, str):
        return review_text(claims, record, document)
    return review_claims(claims, record, document)


def _names(runs: Sequence[Run]) -> str:
    shown = ", ".join(_labels(runs)[:10])
    return f"{shown} and {len(runs) - 10} more" if len(runs) > 10 else shown


def _labels(runs: Sequence[Run]) -> list[str]:
    """The names of runs; those that share one are told apart by their folders, or by their files."""
    names = [run.name for run in runs]
    alike = [run for run in runs if names.count(run.name) > 1]
    roots = [run.root for run in alike]
    spots = {id(run): Path(run.root if roots.count(run.root) == 1 else run.files[0]).resolve() for run in alike}
    top = os.path.commonpath(list(spots.values())) if spots else ""
    near = {one: Path(os.path.relpath(spot, top)).as_posix() for one, spot in spots.items()}
    return [near.get(id(run), run.name) for run in runs]
