"""Train again from the files of a lab run, with some of them corrected: what a user does after a fix.

Nothing but the files decides this run: the launch script is expanded by bash itself, so an edit that breaks its
syntax, or that the program does not read, shows here and not only in a parser of ours.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheeltapper.errors import InputError
from wheeltapper.lab import clock, need_torch
from wheeltapper.lab.faults import Fault
from wheeltapper.lab.launch import LOG_SPEED, leave_stale_checkpoint, load_script, plan_run, write_traceback
from wheeltapper.lab.systems import system
from wheeltapper.lab.truth import Truth, load, truth_path

# `python` becomes a function that prints its arguments, each ended by a zero byte.
_EXPAND = 'python() { printf "%s\\0" "$@"; }; . "./$1"'


@dataclass(frozen=True, slots=True)
class Rerun:
    """How it went. `score` is the clean quality of the weights, as in the truth of the first run."""

    folder: Path
    ended: str
    score: float | None
    reported: float | None
    seconds: float


def rerun(folder: Path, configs: Sequence[Path], out: Path) -> Rerun:
    """Copy script and settings of a lab run to `out`, put `configs` in the place of files of their name, train."""
    need_torch()
    import torch

    folder, out = folder.resolve(), out.resolve()
    truth = _truth(folder)
    home = system(truth.system)
    if out.exists() and any(out.iterdir()):
        raise InputError("this folder is not empty", where=str(out), do="Choose another with -o.")
    out.mkdir(parents=True, exist_ok=True)
    threads = torch.get_num_threads()
    torch.set_num_threads(1 if truth.size != "full" else threads)
    _leave_as_it_was(truth, out)
    for path in _started_with(folder, home.SCRIPT.name):
        target = out / path.relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    for config in configs:
        _put(config, out)
    argv = command_of(out, truth.system)
    began, ended, weights = time.process_time(), "finished", None
    with contextlib.chdir(out):
        clock.start(truth.seed % 50 + 2, LOG_SPEED[truth.size])
        try:
            weights = load_script(out / home.SCRIPT.name).main(argv)
        except (Exception, SystemExit) as error:  # argparse leaves by SystemExit when it refuses an option
            ended = f"crashed: {type(error).__name__}: {error}"[:300]
            write_traceback(out, home.SCRIPT.name)
        finally:
            clock.stop()
            torch.set_num_threads(threads)
    score = home.score(weights, truth.settings) if weights is not None else None
    return Rerun(out, ended, score, home.reported(out), time.process_time() - began)


def _truth(folder: Path) -> Truth:
    path = truth_path(folder.parent.parent, folder.name)
    if not path.exists():
        raise InputError("this is not the folder of a lab run", where=str(folder), do="Give LAB_RUNS/runs/NAME.")
    return load(path)


def _leave_as_it_was(truth: Truth, out: Path) -> None:
    """What lay in the folder before the first run lies there before the second."""
    if truth.fault is None:
        return
    plan = plan_run(truth.system, truth.size, truth.seed, truth.fault)  # type: ignore[arg-type]
    if isinstance(plan.fault, Fault) and plan.fault.stale:
        leave_stale_checkpoint(plan, system(truth.system), out)


def _started_with(folder: Path, script: str) -> list[Path]:
    """The script and what a person wrote for it; not what the run left."""
    found = [folder / script, *folder.glob("*.sh"), *folder.glob("*.yaml"), *folder.glob("options/train/*.yml")]
    return [path for path in found if path.exists()]


def _put(config: Path, out: Path) -> None:
    places = [path for path in out.rglob(config.name) if path.is_file()]
    if len(places) != 1:
        known = ", ".join(sorted(path.name for path in out.rglob("*") if path.is_file()))
        raise InputError(f"the run was not started with a file called {config.name}", do=f"It has: {known}.")
    shutil.copy(config, places[0])


def command_of(folder: Path, name: str) -> list[str]:
    """The arguments that the program is started with, as bash makes them from the launch script."""
    scripts = sorted(folder.glob("*.sh"))
    if not scripts:  # sr-nano is started by hand, as its original is
        options = next(folder.glob("options/train/*.yml"))
        return ["-opt", str(options.relative_to(folder)), "--auto_resume"]
    done = subprocess.run(
        ["bash", "-c", _EXPAND, "bash", scripts[0].name], cwd=folder, capture_output=True, timeout=30, check=False
    )
    words = done.stdout.decode().split("\0")[:-1]
    if done.returncode or not words or words[0] != system(name).SCRIPT.name:
        said = done.stderr.decode().strip()[:300]
        raise InputError(f"the launch script does not start the program: {said}", where=str(scripts[0]))
    return words[1:]
