"""What the command line, notebooks and other programs call.

    import wheeltapper
    for diagnosis in wheeltapper.diagnose("runs/exp1"):
        print(diagnosis.verdict, diagnosis.headline)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from wheeltapper.audit import AuditReport, audit, audit_run
from wheeltapper.diagnosis.compare import Comparison, compare_runs
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.diagnosis.model import Diagnosis
from wheeltapper.diagnosis.schedule import Schedule, lay_out
from wheeltapper.errors import InputError
from wheeltapper.finding import Finding
from wheeltapper.prognosis.forecast import forecast
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals

Where = str | PathLike[str]
Progress = Callable[[str, int, int], None]  # the file, how many are done, how many there are

__all__ = ["check", "compare", "diagnose", "read", "schedule"]


def read(path: Where, *, progress: Progress | None = None) -> list[Run]:
    """Every run at a file or folder. Raises InputError where there is none."""
    return read_runs(str(path), progress=progress)


def diagnose(path: Where, *, progress: Progress | None = None) -> list[Diagnosis]:
    """The diagnosis of every run at a file or folder."""
    return [_with_prognosis(diagnose_run(run, audit=_audited(run))) for run in read(path, progress=progress)]


def _audited(run: Run) -> tuple[Finding, ...]:
    """What its config and code declare and do not do; nothing lies beside most logs."""
    return audit_run(run).findings if run.configs or run.scripts else ()


def _with_prognosis(diagnosis: Diagnosis) -> Diagnosis:
    """Where a run that is not over and not ill is going."""
    if diagnosis.verdict == "ill" or diagnosis.progress.state in ("finished", "crashed") or not diagnosis.run.series:
        return diagnosis
    return replace(diagnosis, prognosis=forecast(Signals(diagnosis.run), diagnosis.findings))


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


def _one(where: Where | Run, name: str | None, option: str) -> Run:
    """The one run meant."""
    if isinstance(where, Run):
        return where
    runs = read(where)
    if name is not None:
        named = [run for run in runs if run.name == name] or [run for run in runs if name in run.name]
        if not named:
            raise InputError(f"{where} holds no run named {name!r}.", do=f"It holds: {_names(runs)}.")
        runs = named
    if len(runs) != 1:
        raise InputError(
            f"{where} holds {len(runs)} runs{f' named {name!r}' if name else ''}.",
            do=f"Say which with {option} NAME, out of: {_names(runs)}.",
        )
    return runs[0]


def _names(runs: Sequence[Run]) -> str:
    shown = ", ".join(run.name for run in runs[:10])
    return f"{shown} and {len(runs) - 10} more" if len(runs) > 10 else shown
