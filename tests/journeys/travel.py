"""One journey: train, show, check, diagnose, fix, apply the patch, train again, follow up. Everything by the command line."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from journeys.itinerary import Fault, Program
from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.errors import WheeltapperError

PROGRAMS = Path(__file__).parent / "programs"
MOST_SECONDS = 300.0  # of one training; they take 3 to 30 on an idle core
BETTER = 0.02  # of what there is to gain: 1 for an accuracy, 100 for one in percent, the size of a loss or of a return


@dataclass
class Journey:
    """What came of it."""

    name: str
    verdict: str = ""
    causes: list[tuple[str, float]] = field(default_factory=list)
    right: bool | None = None  # the first cause; None for a healthy run
    state: str = ""  # of the fix
    edits: list[str] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    applies: bool | None = None
    before: float = math.nan
    after: float = math.nan
    better: bool | None = None
    follow: str = ""
    follow_right: bool | None = None
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)


def missing(program: Program) -> str:
    """The first library that is not installed; empty: all are."""
    return next((name for name in program.needs if importlib.util.find_spec(name) is None), "")


def lay_out(program: Program, fault: Fault | None, folder: Path) -> None:
    """The program in a folder of its own, with the fault in its text."""
    source = PROGRAMS / program.name
    if source.is_dir():
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        folder.mkdir(parents=True)
        shutil.copy(PROGRAMS / f"{program.name}.py", folder / program.entry)
    files = [path for path in folder.rglob("*") if path.suffix in (".py", ".yaml")]
    for old, new in fault.changes if fault else ():
        held = [path for path in files if old in path.read_text()]
        assert len(held) == 1, f"{old!r} stands in {len(held)} files of {program.name}"
        held[0].write_text(held[0].read_text().replace(old, new))


def train(program: Program, folder: Path) -> str:
    """Run it there; the end of what it said where it failed."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    env.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            [sys.executable, program.entry], cwd=folder, env=env, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"longer than {MOST_SECONDS:g} s"
    return "" if done.returncode == 0 else (done.stderr or done.stdout)[-500:]


def score(program: Program, folder: Path) -> float:
    """The last quarter of the series that tells how good the run is; the worst there is where it is not finite."""
    for run in api.read(folder):
        series = run.series_named(program.score) or next(
            (s for s in run.series.values() if program.score.split("/")[-1] == s.quantity and s.split != "train"), None
        )
        if series is not None and len(series.values):
            tail = series.values[-max(1, len(series.values) // 4) :]
            return float(np.mean(tail)) if np.isfinite(tail).all() else (-math.inf if program.up else math.inf)
    return math.nan


def say(*args: str) -> tuple[int, str]:
    """A command of ours, its exit code and what it printed."""
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(list(args))
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


def answer(*args: str) -> Any:
    code, text = say(*args, "--json")
    assert code in (0, 1, 3), f"{args} ended with {code}"
    found = json.loads(text)
    return found[0] if isinstance(found, list) else found


def travel(program: Program, fault: Fault | None, base: Path) -> Journey:
    """The whole way. What the tool itself gets wrong is written down, not raised; a traceback is raised."""
    made = Journey(f"{program.name}:{fault.name if fault else 'healthy'}")
    began = time.monotonic()
    old, new, fixed = base / "old", base / "new", base / "fix"
    lay_out(program, fault, old)
    if failed := train(program, old):
        made.notes.append(f"the training failed: {failed[-120:]}")
    for command in ("show", "check"):
        code, text = say(command, str(old))
        assert code in (0, 1, 3), f"{command} ended with {code}: {text[-300:]}"
    (diagnosis,) = api.diagnose(old)[:1]
    made.verdict = diagnosis.verdict
    made.causes = [(c.id, round(c.probability, 2)) for c in diagnosis.causes[:3]]
    made.before = score(program, old)
    if fault is not None:
        made.right = bool(made.causes) and made.causes[0][0] in fault.causes
    if diagnosis.verdict == "ill":
        _heal(program, made, old, new, fixed, None)
        if made.applies is None and fault is not None and fault.setting:  # not sure enough by itself: the true cause is tried
            _heal(program, made, old, new, fixed, next(iter(sorted(fault.causes - {"setting-beyond-practice", "no-warmup"}))))
    made.seconds = time.monotonic() - began
    return made


def _range(program: Program, made: Journey) -> float:
    largest = max((abs(v) for v in (made.before, made.after) if math.isfinite(v)), default=1.0)
    if program.score.endswith("accuracy"):
        return 100.0 if largest > 1.5 else 1.0
    return largest


def _heal(program: Program, made: Journey, old: Path, new: Path, fixed: Path, wanted: str | None) -> None:
    try:
        fix = api.fix(old, wanted=wanted)
        api.save_fix(fix, fixed)
    except WheeltapperError as error:
        made.notes.append(f"fix refused: {error}")
        return
    made.state = f"{fix.state}{' --try ' + wanted if wanted else ''}"
    if not fix.edited:
        return
    made.edits = [f"{c.key}: {c.old} → {c.new}" for one in fix.edited for c in one.changes]
    made.places = [os.path.relpath(one.file, old) for one in fix.edited]
    new.mkdir()
    for path in old.rglob("*"):  # what a person would keep in the repository: sources and settings that he wrote
        inside = path.relative_to(old)
        if path.suffix in (".py", ".sh", ".yaml") and not {"out", "outputs", "lightning_logs", "output"} & set(inside.parts):
            (new / inside).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, new / inside)
    here = Path(os.path.relpath(os.path.commonpath([os.path.dirname(os.path.abspath(e.file)) for e in fix.edited]), old))
    done = subprocess.run(
        ["git", "apply", str(fixed.resolve() / "fix.patch")], cwd=new / here, capture_output=True, text=True, check=False
    )
    same = all((new / os.path.relpath(e.file, old)).read_bytes().decode() == e.after for e in fix.edited)
    made.applies = done.returncode == 0 and same
    if not made.applies:
        made.notes.append(f"git apply: {done.stderr[-200:]}")
        return
    if failed := train(program, new):
        made.notes.append(f"the fixed training failed: {failed[-120:]}")
        return
    made.after = score(program, new)
    gain = made.after - made.before if program.up else made.before - made.after
    made.better = bool(gain > BETTER * _range(program, made))
    result = api.followup(new, fixed)
    states = [one.status for one in result.issues]
    made.follow = f"{result.verdict}: {', '.join(states)}"
    # A fixed run that is better must not refute the cause that was treated, and one that is not must not be called fixed.
    first = states[0] if states else ""
    made.follow_right = first in ("FIXED", "PARTIAL") if made.better else first not in ("FIXED",)
