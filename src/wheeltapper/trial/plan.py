"""The plan of a trial: arms, rule, fork, length, seeds and cost, all decided and written down before anything runs."""

from __future__ import annotations

import importlib.metadata
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from wheeltapper import __version__
from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit
from wheeltapper.judge.model import Diagnosis
from wheeltapper.remedy.code_edits import seed_in_code
from wheeltapper.remedy.loads import edit_run
from wheeltapper.remedy.studied import study_of
from wheeltapper.run.model import Run
from wheeltapper.settings.edit import editable
from wheeltapper.settings.knobs import KNOBS, Knobs
from wheeltapper.settings.write import replace_bytes
from wheeltapper.trial import design
from wheeltapper.trial.arms import Wish, arms_of
from wheeltapper.trial.commands import found_command, home_of
from wheeltapper.trial.git import commit_of
from wheeltapper.trial.ledger import hash_of
from wheeltapper.trial.model import Arm, Fork, Rule
from wheeltapper.trial.power import first_guess
from wheeltapper.trial.protocol import Command, check_command, holes

PLAN_FILE = "plan.json"
AA_PAIRS = 2  # A/A repeats: one tells whether the run repeats to the bit, two give a spread
HASHED_PACKAGES = ("torch", "numpy", "jax", "tensorflow", "lightning", "transformers", "accelerate", "timm")


@dataclass(frozen=True, slots=True)
class Cost:
    """Machine time. `each` None: the record tells no time; the first control will."""

    each: float | None  # seconds of one repeat
    fewest: int  # repeats if everything is decided as early as it can be
    most: int  # repeats if nothing is decided

    @property
    def least_seconds(self) -> float | None:
        return None if self.each is None else self.each * self.fewest

    @property
    def most_seconds(self) -> float | None:
        return None if self.each is None else self.each * self.most


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """All that the driver needs; nothing in it changes while the trial runs."""

    run: str
    name: str
    command: Command
    arms: tuple[Arm, ...]
    rule: Rule
    fork: Fork
    clock: str
    length: float  # position up to which an arm runs
    length_why: str
    cut: bool  # whether arms are stopped there; else they end by themselves
    whole: bool  # whether arms are as long as the original
    seeds: tuple[int, ...]
    aa: int
    cost: Cost
    seed_way: str  # how the seed reaches the training
    knobs: dict[str, Any] = field(default_factory=dict)  # values of the knobs that command and seed need
    per_epoch: float | None = None
    notes: tuple[str, ...] = ()
    left: tuple[tuple[str, str], ...] = ()  # causes that are not tried, and why
    budget: float | None = None
    hashes: dict[str, Any] = field(default_factory=dict)
    headline: str = ""

    def arm(self, arm_id: str) -> Arm:
        return next(arm for arm in self.arms if arm.id == arm_id)

    @property
    def tried(self) -> tuple[Arm, ...]:
        """The arms that are compared with the control."""
        return tuple(arm for arm in self.arms if arm.kind not in ("control", "aa"))


def save_plan(plan: TrialPlan, folder: Path) -> None:
    text = msgspec.json.format(msgspec.json.encode(plan), indent=2)
    replace_bytes(folder / PLAN_FILE, text + b"\n")


def plan_object(plan: TrialPlan) -> Any:
    return msgspec.to_builtins(plan)


def plan_from(record: Any) -> TrialPlan:
    return msgspec.convert(record, TrialPlan)


def make_plan(
    diagnosis: Diagnosis, run_path: str, command_text: str | None, wish: Wish, *, search: Sequence[Edit] | None = None
) -> TrialPlan:
    """Everything decided. Raises InputError where the question cannot be put to trial.

    `command_text` None: the command is found beside the run (commands.py). `search`: the edits among which a search will look (hunt.py), instead of arms of its own; empty for commits.
    """
    run = diagnosis.run
    if command_text is None:
        command_text = found_command(run)
        wish = replace(wish, cwd=wish.cwd or (None if (home := home_of(run)) is None else str(home)))
    check_command(command_text)
    knobs: Knobs | None = study_of(diagnosis).maybe("knobs")
    command = _command(diagnosis, run_path, command_text, wish)
    arms, left = arms_of(diagnosis, command, wish, knobs) if search is None else ((), [])
    edits = [edit for arm in arms for edit in arm.edits] if search is None else list(search)
    symptom = design.leading_symptom(diagnosis, wish.symptom, {arm.cause for arm in arms if arm.cause})
    if diagnosis.verdict == "sound" and any(arm.cause for arm in arms):
        raise InputError(
            "the run is sound: there is no symptom whose cause could be tried.",
            do="To measure what a change does all the same, give it as --set knob=value.",
        )
    metric = design.choose_metric(diagnosis, symptom, wish.metric)
    clock, end = design.choose_clock(diagnosis, metric)
    rule = design.choose_rule(
        symptom, metric, arms=len(arms), alpha=wish.alpha, repeats=wish.repeats, delta=wish.delta,
        better=wish.better,
    )  # fmt: skip
    fork = design.choose_fork(diagnosis, clock, edits, "resume" in holes(command_text))
    length, why = design.choose_length(diagnosis, rule, clock, end, fork, edits, wish.steps)
    needed = _needed_knobs(command_text, knobs, run)
    seed = needed.get("run.seed")
    first = seed if isinstance(seed, int) else 1
    seeds = tuple(first + i for i in range(rule.most_pairs))
    pace = design.seconds_per(run, clock)
    fewest = first_guess(rule)
    control = Arm("control", "control", "nothing changed; it must show the symptom again")
    again = Arm("aa", "aa", "the control once more with the same seeds: how far two equal runs differ")
    return TrialPlan(
        run=run_path,
        name=run.name,
        command=command,
        arms=(control, again, *arms),
        rule=rule,
        fork=fork,
        clock=clock,
        length=length,
        length_why=why,
        whole=fork.path is None and length >= end,
        cut=length < end and not {"steps", "epochs"} & set(holes(command_text)),
        seeds=seeds,
        aa=min(AA_PAIRS, len(seeds)),
        cost=Cost(
            None if pace is None else pace * (length - fork.step),
            fewest=min(fewest, len(seeds)) * (1 + sum(not arm.after for arm in arms)) + 1,
            most=len(seeds) * (1 + len(arms)) + min(AA_PAIRS, len(seeds)),
        ),
        seed_way=_seed_way(command_text, seed, run),
        knobs=needed,
        per_epoch=_number(run.fact("steps_per_epoch")),
        notes=_notes(rule, edits, length < end, metric.name),
        left=tuple(left),
        budget=wish.budget,
        hashes=hashes_of(diagnosis, command, fork, (*wish.data, *(source for arm in arms for _, source in arm.files))),
        headline=diagnosis.headline,
    )


# ---------------------------------------------------------------- what the command needs


def _command(diagnosis: Diagnosis, run_path: str, text: str, wish: Wish) -> Command:
    run = diagnosis.run
    root = Path(run.root) if Path(run.root).is_dir() else Path(run.root).parent
    given = Path(run_path) if Path(run_path).is_dir() else Path(run_path).parent
    cwd = Path(wish.cwd) if wish.cwd else _home_of(text, (given, root), run.scripts)
    if not cwd.is_dir():
        raise InputError(f"there is no folder {cwd}.", do="Name the folder to run the command in with --cwd.")
    cwd = cwd.resolve()
    named = holes(text)
    config = wish.config
    if config is not None and not Path(config).is_file():
        raise InputError(f"there is no file {config}.", do="Name the config that the command takes with --config.")
    if "config" in named and config is None:
        own = [tree for tree in run.configs if editable(tree)]
        # `bash {config}` means the launch script, `python train.py {config}` the file of settings.
        started = text.split()[0].rsplit("/", 1)[-1] in ("sh", "bash", "zsh")
        files = sorted({tree.file for tree in own if tree.file.endswith((".sh", ".bash")) == started})
        files = files or sorted({tree.file for tree in own})
        if len(files) != 1:
            held = "no config file" if not files else f"{len(files)} config files: {', '.join(files)}"
            raise InputError(f"the run holds {held}.", do="Name the one that {config} stands for with --config FILE.")
        config = files[0]
    isolated = "out" not in named
    return Command(
        text=text,
        cwd=str(cwd),
        config=None if config is None else str(Path(config).resolve()),
        isolated=isolated,
        leave_out=_written(diagnosis, cwd, root.resolve()) if isolated else (),
        told=tuple(sorted({tree.file for tree in run.configs if editable(tree)})),
        cpus=wish.cpus,
        gpus=wish.gpus,
        memory=wish.memory,
        timeout=wish.timeout,
    )


def _home_of(text: str, homes: Sequence[Path], scripts: Sequence[str]) -> Path:
    """Here, if the command names a file that is here; else where the run has such a file, or its own script."""
    try:
        words = [w for w in shlex.split(text) if "{" not in w and not w.startswith(("-", "/", "~"))]
    except ValueError:
        raise InputError("the command has an open quote.", do="Close it.") from None
    for home in (Path("."), *homes):
        if any((home / word).is_file() for word in words):
            return home
    own = [Path(script).parent for script in scripts]
    return next((home for home in homes if home.resolve() in {o.resolve() for o in own}), Path("."))


def _written(diagnosis: Diagnosis, cwd: Path, root: Path) -> tuple[str, ...]:
    """What the run wrote: no copy may begin with it. A run in a folder below is left out with that folder."""
    run = diagnosis.run
    keep = {Path(tree.file).resolve() for tree in run.configs if editable(tree)} | {
        Path(s).resolve() for s in run.scripts
    }
    out: set[Path] = set()
    for place in (root, *(Path(f).resolve().parent for f in (*run.files, *(c.path for c in run.checkpoints)))):
        if place != cwd and place.is_relative_to(cwd):
            top = cwd / place.relative_to(cwd).parts[0]
            if not any(one.is_relative_to(top) for one in keep):
                out.add(top)
    for file in (Path(f).resolve() for f in (*run.files, *(c.path for c in run.checkpoints))):
        if file not in keep and file.is_relative_to(cwd) and not any(file.is_relative_to(o) for o in out):
            out.add(file)
    return tuple(sorted(map(str, out)))


def _needed_knobs(text: str, knobs: Knobs | None, run: Run) -> dict[str, Any]:
    needed = [name for name in (*holes(text), "run.seed") if name in KNOBS]
    found = {} if knobs is None else {name: knobs.value(name) for name in needed if name in knobs}
    if "run.seed" not in found and (seed := seed_in_code(run)) is not None:
        found["run.seed"] = seed
    return found


def _seed_way(text: str, seed: Any, run: Run) -> str:
    if "seed" in holes(text):
        return "by {seed} in the command"
    if isinstance(seed, int) and "set" not in holes(text):
        try:
            edited = edit_run(run, [Edit("run.seed", seed, seed + 1)])
            change = edited[0].changes[0]
            return f"by {change.key} in {Path(edited[0].file).name}:{change.line}"
        except RefusedEdit:
            pass
    return "only by the variable WHEELTAPPER_SEED: unless the script reads it, all repeats are the same run"


def _notes(rule: Rule, edits: Sequence[Edit], short: bool, metric: str) -> tuple[str, ...]:
    out = []
    rate = any(e.knob.startswith(("optimizer.lr", "schedule.", "batch.")) for e in edits)
    if rate and short and rule.kind == "difference":
        out.append("arms with other learning rates are cut short: short runs favour the smaller rate")
    if any(e.knob.startswith("loss.") for e in edits) and metric.endswith("loss"):
        out.append(f"an arm changes the loss itself, so {metric} is not the same quantity in it")
    if not rule.symptom:
        out.append("no sign to reproduce: a trial can say that a change makes a difference, not that it is the cause")
    return tuple(out)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value == value else None


def hashes_of(diagnosis: Diagnosis, command: Command, fork: Fork, data: Sequence[str]) -> dict[str, Any]:
    """What the result depends on, by content (TRL-18)."""
    run = diagnosis.run
    configs = {tree.file for tree in run.configs if editable(tree)} | ({command.config} if command.config else set())
    packages: Mapping[str, str] = {
        name: importlib.metadata.version(name) for name in HASHED_PACKAGES if _installed(name)
    }
    return {
        "checkpoint": None if fork.path is None else hash_of(fork.path),
        "code": {s: hash_of(s) for s in run.scripts[:50]},
        "commit": commit_of(Path(command.cwd)),
        "config": {c: hash_of(c) for c in sorted(configs)},
        "data": {d: hash_of(d) for d in data},
        "versions": {"wheeltapper": __version__, "python": sys.version.split()[0], "platform": platform.platform(), **packages},
    }  # fmt: skip


def _installed(name: str) -> bool:
    try:
        importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True
