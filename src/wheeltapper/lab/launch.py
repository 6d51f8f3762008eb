"""Run one training of the lab, healthy, faulty or odd, and write down what is true of it."""

from __future__ import annotations

import contextlib
import importlib.util
import shutil
import sys
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from wheeltapper.errors import ContractError
from wheeltapper.lab import clock, need_torch
from wheeltapper.lab.faults import Benign, Fault, find, patched
from wheeltapper.lab.manifest import compare
from wheeltapper.lab.systems import Settings, Size, system
from wheeltapper.lab.truth import Truth, load, run_name, save, truth_path

# Log seconds per CPU second: a run of five seconds looks like one of twenty minutes.
LOG_SPEED = {"test": 240.0, "tiny": 60.0, "full": 1.0}


@dataclass(frozen=True, slots=True)
class Plan:
    """One run, decided down to the last setting before anything is started."""

    system: str
    size: Size
    seed: int
    settings: Settings
    fault_id: str | None  # the id and not the fault itself, so that a plan can be sent to another process
    onset: float | None
    script: str  # the text of the training script, patched
    keep_script: bool

    @property
    def name(self) -> str:
        return run_name(self.system, self.size, self.seed, self.fault_id, self.settings)

    @property
    def fault(self) -> Fault | Benign | None:
        return find(self.system, self.fault_id) if self.fault_id else None


def plan_run(
    name: str, size: Size, seed: int, fault_id: str | None, base: Settings | None = None, keep_script: bool = True
) -> Plan:
    """Decide a run. `base` are the healthy settings (the recipe's, if not given)."""
    home = system(name)
    fault = find(name, fault_id) if fault_id else None
    settings: Settings = {**home.RECIPES[size], **(base or {}), "seed": seed}
    if fault is None:
        return Plan(name, size, seed, settings, None, None, home.SCRIPT.read_text(encoding="utf-8"), keep_script)
    rng = Random(f"{seed}:{fault.id}")
    settings |= fault.needs
    settings |= fault.change(settings, rng)
    onset = None
    if fault.at:
        onset = float(round(home.length(settings) * rng.uniform(*fault.at)))
    elif isinstance(fault, Fault):
        onset = fault.onset(settings) if fault.onset else 0.0
    script = patched(home.SCRIPT.read_text(encoding="utf-8"), fault.patch, onset)
    return Plan(name, size, seed, settings, fault_id, onset, script, keep_script)


def plan_twin(plan: Plan, base: Settings | None = None) -> Plan:
    """The same run without the fault: same seed, same data, and whatever else the fault needs around it."""
    fault = plan.fault
    return plan_run(plan.system, plan.size, plan.seed, None, {**(base or {}), **(fault.needs if fault else {})})


def run(plan: Plan, out: Path, twin: Truth | None = None) -> Truth:
    """Train by the plan under `out`; an earlier run of the same plan is taken as it is."""
    need_torch()
    out = out.resolve()  # a training runs inside its folder, where a relative path means another place
    known = truth_path(out, plan.name)
    if known.exists():
        return load(known)
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1 if plan.size != "full" else threads)
    folder = out / "runs" / plan.name
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    home, fault = system(plan.system), plan.fault
    if isinstance(fault, Fault) and fault.stale:
        leave_stale_checkpoint(plan, home, folder)
    began = time.process_time()
    ended, weights = train(plan, home, folder)
    seconds = time.process_time() - began
    truth = Truth(
        run=plan.name,
        system=plan.system,
        size=plan.size,
        seed=plan.seed,
        settings=plan.settings,
        kind="healthy" if fault is None else "fault" if isinstance(fault, Fault) else "benign",
        fault=fault.id if fault else None,
        onset=plan.onset,
        unit=home.UNIT,
        length=home.length(plan.settings),
        script=plan.keep_script,
        twin=twin.run if twin else None,
        ended=ended,
        score=home.score(weights, plan.settings) if weights is not None else None,
        reported=home.reported(folder),
        seconds=seconds,
        memory=home.memory(folder) if hasattr(home, "memory") else 0.0,
    )
    if isinstance(fault, Fault):
        truth.cause, truth.knob, truth.harm = fault.cause, fault.knob, fault.harm
        truth.also, truth.decidable = fault.also, fault.seen == "log" or (fault.seen == "code" and plan.keep_script)
        if fault.crash_onset:
            truth.onset = home.last_position(folder)
        truth.good = fault.good if twin is None or fault.good is not None else twin.settings.get(fault.knob)
        truth.bad = fault.bad if fault.bad is not None else plan.settings.get(fault.knob)
    if fault is not None and twin is not None:
        truth.manifested, truth.measured = compare(truth, twin, home.NOISE)
    torch.set_num_threads(threads)
    save(out, truth)
    return truth


def run_with_twin(plan: Plan, out: Path, base: Settings | None = None) -> Truth:
    """Run the plan and, for a fault or an oddity, the healthy run it is measured against."""
    if plan.fault is None:
        return run(plan, out)
    return run(plan, out, run(plan_twin(plan, base), out))


def train(plan: Plan, home: ModuleType, folder: Path) -> tuple[str, Any]:
    """Launch, and launch again where the fault is about resuming. Gives how it ended, and the weights."""
    fault = plan.fault
    cut_at = plan.onset if fault is not None and fault.resume else None
    (folder / home.SCRIPT.name).write_text(plan.script, encoding="utf-8")
    ended, weights = "finished", None
    with warnings.catch_warnings(record=True) as caught, contextlib.chdir(folder):
        warnings.simplefilter("default")
        day = plan.seed % 50
        for launch in (0, 1):
            clock.start(day + launch, LOG_SPEED[plan.size], cut_at if launch == 0 else None)
            try:
                weights = home.launch(load_script(folder / home.SCRIPT.name), plan.settings, folder)
                break
            except clock.Preempted:
                continue
            except Exception as error:
                ended = f"crashed: {type(error).__name__}: {error}"[:300]
                write_traceback(folder, home.SCRIPT.name)
                break
            finally:
                clock.stop()
    write_warnings(folder, home.SCRIPT.name, caught)
    if not plan.keep_script:
        (folder / home.SCRIPT.name).unlink()
    return ended, weights


def load_script(path: Path) -> ModuleType:
    """Import the script from the run folder, under a name of its own so that no two runs share state."""
    name = f"lab_script_{path.parent.name.replace('-', '_')}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ContractError(f"{path.name} cannot be loaded as a script")
    module = importlib.util.module_from_spec(spec)
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        spec.loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = keep
    return module


def write_traceback(folder: Path, script: str) -> None:
    """What the terminal would have shown, from the script's own frame on."""
    kind, error, trace = sys.exc_info()
    while trace is not None and Path(trace.tb_frame.f_code.co_filename).name != script and trace.tb_next:
        trace = trace.tb_next
    text = "".join(traceback.format_exception(kind, error, trace)).replace(f"{folder}/", "")
    with (folder / "nohup.out").open("a", encoding="utf-8") as file:
        file.write(text)


def write_warnings(folder: Path, script: str, caught: list[warnings.WarningMessage]) -> None:
    lines = dict.fromkeys(
        f"{script}:{one.lineno}: {one.category.__name__}: {one.message}\n"
        for one in caught
        if one.category is UserWarning
    )
    if lines:
        out = folder / "nohup.out"
        out.write_text("".join(lines) + (out.read_text(encoding="utf-8") if out.exists() else ""), encoding="utf-8")


def leave_stale_checkpoint(plan: Plan, home: ModuleType, folder: Path) -> None:
    """An earlier attempt with a far too small LR, stopped at three quarters, left its checkpoint here."""
    old = plan_run(plan.system, plan.size, plan.seed + 1, None, home.stale_settings(plan.settings))
    with contextlib.chdir(folder):
        clock.start(0, LOG_SPEED[plan.size], 0.75 * home.length(plan.settings))
        (folder / home.SCRIPT.name).write_text(old.script, encoding="utf-8")
        try:
            home.launch(load_script(folder / home.SCRIPT.name), old.settings, folder)
        except clock.Preempted:
            pass
        finally:
            clock.stop()
    for path in list(folder.rglob("*")):
        if path.is_file() and path.name not in home.STALE_FILES:
            path.unlink()
