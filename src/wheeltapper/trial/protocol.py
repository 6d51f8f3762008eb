"""How an arm is started, for any training command.

`{config}` `{seed}` `{steps}` `{epochs}` `{resume}` `{out}` `{set}` in the command are filled in, and `{knob.id}` by the
arm's value of that knob. The same values stand in WHEELTAPPER_* variables. A command that does not name `{out}`
would write over the original run, so each of its repeats runs in a copy of the working folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheeltapper import trial as script_side
from wheeltapper.errors import InputError
from wheeltapper.finding import Edit
from wheeltapper.remedy.loads import edit_run
from wheeltapper.run.model import Run
from wheeltapper.settings.edited import Edited
from wheeltapper.settings.knobs import KNOBS
from wheeltapper.trial.commands import overrides
from wheeltapper.trial.engines import Job
from wheeltapper.trial.quoting import written_at

WORDS = ("config", "seed", "steps", "epochs", "resume", "out", "set")
# ${VAR} belongs to the shell and {print $1} to awk; ours is a word or a dotted word alone.
HOLE = re.compile(r"(?<!\$)\{([A-Za-z_][\w.]*)\}")
LINKED_FILE = 16 << 20  # bytes; a larger file is data or weights, and is linked instead of copied
LINKED_FOLDER = 500  # entries; a larger folder is data
MOST_ENTRIES = 20_000
MOST_WRITTEN = 2_000  # files that one repeat may write and that are read
KEPT_FILE = 64 << 20  # bytes; a larger log is not kept once its outcome is known
COMMAND_FILE, RECORD = "command.sh", "record"
WEIGHTS = {
    ".pt", ".pth", ".ckpt", ".safetensors", ".bin", ".state", ".states", ".pkl", ".pickle", ".h5", ".npz", ".npy",
    ".pdparams", ".msgpack", ".onnx", ".tar", ".model",
}  # fmt: skip
NEVER_COPIED = {".git", "__pycache__", ".venv", "venv", "node_modules", ".mypy_cache", ".ruff_cache", ".pytest_cache", "wandb", "mlruns"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Command:
    """The training command and what surrounds it."""

    text: str
    cwd: str
    config: str | None = None  # the file that {config} stands for
    isolated: bool = False  # each repeat in a copy of cwd
    leave_out: tuple[str, ...] = ()  # paths that the copy does without: what the run wrote
    told: tuple[str, ...] = ()  # config files of the run, which are read beside an arm's logs
    cpus: float = 1.0
    gpus: float = 0.0
    memory: int | None = None
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """What one repeat of an arm is started with."""

    seed: int
    steps: float | None
    epochs: float | None
    resume: str | None
    edits: tuple[Edit, ...]
    knobs: Mapping[str, Any]  # values of knobs that the command names, before the edits
    files: tuple[tuple[str, str], ...] = ()  # replaced in the copy


def holes(text: str) -> list[str]:
    """The names in braces that are ours.

    >>> holes("python t.py -c {config} --lr {optimizer.lr} ${HOME} $(awk '{print $1}' x)")
    ['config', 'optimizer.lr']
    """
    return list(dict.fromkeys(HOLE.findall(text)))


def check_command(text: str) -> None:
    """Refuse a command that could not be filled in."""
    if not text.strip():
        raise InputError("the command is empty.", do='Give it as --cmd "python train.py --config {config}".')
    for name in holes(text):
        if name not in WORDS and name not in KNOBS:
            raise InputError(
                f"the command names {{{name}}}, which is neither one of {', '.join(WORDS)} nor a knob.",
                do="A knob is written as {optimizer.lr}; the plan of `wheeltapper trial --dry-run` names those that it changes.",
            )


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The command with its holes filled, each value one argument of it, whatever it holds (quoting.py).

    >>> fill("python t.py --seed {seed} -o {out}", {"seed": 3, "out": "/tmp/my runs"})
    "python t.py --seed 3 -o '/tmp/my runs'"
    """

    def one(match: re.Match[str]) -> str:
        value = values.get(match[1])
        if value is None:
            raise InputError(f"the command names {{{match[1]}}}, and this trial has no value for it.")
        return written_at(_spelt(value), text, match.start(), match.end())

    return HOLE.sub(one, text)


def _spelt(value: Any) -> str:
    """Numbers as short as they are exact; whole floats without their point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def config_edits(setting: Setting, command: str, knobs: Mapping[str, Any]) -> list[Edit]:
    """The edits that must go into files: those whose knob the command does not name, and the seed."""
    named = set(holes(command))
    if "set" in named:
        return []
    out = [edit for edit in setting.edits if edit.knob not in named]
    old = knobs.get("run.seed")
    if "seed" not in named and old is not None and old != setting.seed and not any(e.knob == "run.seed" for e in out):
        out.append(Edit("run.seed", old, setting.seed))
    return out


def prepare(
    command: Command,
    setting: Setting,
    job_id: str,
    folder: Path,
    run: Run,
    knobs: Mapping[str, Any] | None = None,
) -> Job:
    """Lay out the folder of one repeat and give the job that runs it."""
    out = folder / "out"
    out.mkdir(parents=True, exist_ok=True)
    edits = config_edits(setting, command.text, knobs or {})
    edited = edit_run(run, edits) if edits else []
    cwd = Path(command.cwd)
    if command.isolated:
        lay_out(cwd, folder / "work", (*command.leave_out, str(folder)))
        cwd = folder / "work"
        for name, source in setting.files:
            (cwd / name).unlink(missing_ok=True)  # it may be a link to the original
            shutil.copy(source, cwd / name)
    config = _place_configs(command, edited, folder)
    _link_configs(command, folder)
    values: dict[str, Any] = {
        **setting.knobs,
        **{edit.knob: edit.new for edit in setting.edits},
        "config": config,
        "seed": setting.seed,
        "steps": setting.steps,
        "epochs": setting.epochs,
        "resume": setting.resume,
        "out": str(out),
    }
    text = fill(_with_overrides(command.text, setting, run), values)
    (folder / COMMAND_FILE).write_text(f"cd {shlex.quote(str(cwd))}\n{text}\n", encoding="utf-8")
    env = {script_side.SEED: str(setting.seed), script_side.OUT: str(out)}
    for name, value in ((script_side.STEPS, setting.steps), (script_side.CONFIG, config), (script_side.RESUME, setting.resume)):  # fmt: skip
        if value is not None:
            env[name] = _spelt(value)
    # A script that we run from a copy must not be shadowed by the original beside it, nor leave caches in it.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    env["PYTHONHASHSEED"] = "0"
    return Job(
        job_id, text, str(cwd), str(folder), env, command.cpus, command.gpus, command.memory, command.timeout
    )  # fmt: skip


def _with_overrides(text: str, setting: Setting, run: Run) -> str:
    """`{set}` is several words or none, so it is not filled in as the others are."""
    return text if "set" not in holes(text) else text.replace("{set}", overrides(run, setting.edits)).strip()


def _place_configs(command: Command, edited: Sequence[Edited], folder: Path) -> str | None:
    """Write the edited files where the command will read them; gives what {config} stands for."""
    source = Path(command.cwd).resolve()
    placed: dict[Path, Path] = {}
    for one in edited:
        file = Path(one.file).resolve()
        if command.isolated and file.is_relative_to(source):
            target = folder / "work" / file.relative_to(source)
        elif command.config is not None and file == Path(command.config).resolve():
            target = folder / "config" / file.name
        else:
            raise InputError(
                f"{one.changes[0].knob} is set in {one.file}, which the command does not take as {{config}}.",
                do="Name that file with --config, or leave {out} out of the command to run in a copy of the folder.",
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.is_symlink():
            target.unlink()
        with target.open("w", encoding="utf-8", newline="") as file_out:
            file_out.write(one.after)
        placed[file] = target
    if command.config is None:
        return None
    file = Path(command.config).resolve()
    if command.isolated and file.is_relative_to(source):
        return str(file.relative_to(source))
    if file in placed:
        return str(placed[file])
    target = folder / "config" / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, target)
    return str(target)


def lay_out(source: Path, target: Path, leave_out: Sequence[str] = ()) -> None:
    """Copy a working folder for one repeat. Big files and data folders are linked; what the run wrote is left out."""
    out = {Path(path).resolve() for path in leave_out}
    count = 0
    target.mkdir(parents=True, exist_ok=True)
    stack = [(source.resolve(), target)]
    while stack:
        here, there = stack.pop()
        for entry in sorted(os.scandir(here), key=lambda e: e.name):
            path = Path(entry.path)
            if entry.name in NEVER_COPIED or path.resolve() in out:
                continue
            count += 1
            if count > MOST_ENTRIES:
                raise InputError(
                    f"{source} holds more than {MOST_ENTRIES:,} files, too many to copy for every repeat.",
                    do="Let the command write to {out}; then nothing is copied.",
                )
            new = there / entry.name
            if entry.is_dir() and not entry.is_symlink():
                if len(os.listdir(path)) > LINKED_FOLDER:
                    new.symlink_to(path)
                else:
                    new.mkdir(exist_ok=True)
                    stack.append((path, new))
            elif entry.is_symlink() or entry.stat().st_size > LINKED_FILE:
                new.symlink_to(path.resolve())
            elif entry.is_file():
                shutil.copy2(path, new)


def clear_copy(folder: Path) -> None:
    """Throw away the copied working folder of a repeat that ended; what it wrote is kept in record/."""
    for link in (path for path in (folder / RECORD).rglob("*") if path.is_symlink()):
        with contextlib.suppress(OSError):
            source = link.resolve()
            if source.is_relative_to((folder / "work").resolve()) and source.stat().st_size <= KEPT_FILE:
                link.unlink()
                shutil.move(source, link)
    shutil.rmtree(folder / "work", ignore_errors=True)


def written(folder: Path) -> Path:
    """A folder with links to what a repeat wrote since it was started, and to its configs.

    Weights are left out: a checkpoint may be rewritten while we read it, and says nothing about the outcome. So are
    the files that were only copied: another run's log among them would be taken for this one's.
    """
    record = folder / RECORD
    record.mkdir(exist_ok=True)
    try:
        since = (folder / COMMAND_FILE).stat().st_mtime_ns
    except OSError:
        return record
    count = 0
    for base in (folder / "out", folder / "work"):
        for here, _, names in os.walk(base):  # linked data folders are not walked into
            for name in names:
                path = Path(here, name)
                link = record / path.relative_to(base)
                if path.suffix.lower() in WEIGHTS or path.is_symlink() or link.exists():
                    continue
                with contextlib.suppress(OSError):
                    if path.stat().st_mtime_ns < since:
                        continue
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.unlink(missing_ok=True)
                    link.symlink_to(path)
                    count += 1
                if count > MOST_WRITTEN:
                    return record
    return record


def _link_configs(command: Command, folder: Path) -> None:
    """The arm's configs beside its logs, as they lie in the original: signs read settings from them."""
    source = Path(command.cwd).resolve()
    for name in command.told:
        file = Path(name).resolve()
        inside = file.is_relative_to(source)
        place = file.relative_to(source) if inside else Path(file.name)
        edited = folder / "config" / file.name
        target = folder / "work" / place if command.isolated and inside else edited if edited.exists() else file
        link = folder / RECORD / (place if command.isolated else file.name)
        if target.exists() and not link.exists():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
