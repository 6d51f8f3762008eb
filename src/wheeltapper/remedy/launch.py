"""Commands that start the next run: the user's own launch line with the corrected file in its place.

A command is offered only where the record holds the line and what it starts lies on disk; else the reader is
told in words. A command that does not run costs more trust than none.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from wheeltapper.run.model import Run
from wheeltapper.settings.edited import Edited

PATCH = "fix.patch"
_STARTS = re.compile(r"(^|\s)(python[0-9.]*|torchrun|accelerate|deepspeed|srun|mpirun|uv|poetry)\s")


@dataclass(frozen=True, slots=True)
class Command:
    """One line to paste. `text` uses {new} for the folder of the fix until that is known."""

    text: str
    about: str

    def at(self, folder: str) -> str:
        return self.text.replace("{new}", folder)


def launches(run: Run, edited: Sequence[Edited]) -> tuple[Command, ...]:
    """How to start the next run, for each corrected file that a launch line is known for."""
    out = []
    for one in edited:
        tree = next((t for t in run.configs if t.file == one.file and t.text is not None), None)
        name = PurePath(one.file).name
        folder = os.path.dirname(os.path.abspath(one.file))
        if tree is not None and tree.kind == "command" and _runs_here(tree.get("script"), folder):
            start = _folder(run, folder)
            out.append(Command(f"{start} && bash {{new}}/{shlex.quote(name)}", "start the next run"))
            continue
        line = _line_with(run, name) if tree is not None else _started_as(run, one.file)
        if line is not None:
            out.append(Command(line, "start the next run"))
    if edited and all(os.path.isfile(one.file) for one in edited):
        out.append(Command(f"cd {shlex.quote(patch_root(edited))} && git apply {{new}}/{PATCH}", "or change your own files"))
    return tuple(out)


def patch_root(edited: Sequence[Edited]) -> str:
    """The folder that the paths of the patch are seen from."""
    return os.path.commonpath([os.path.dirname(os.path.abspath(one.file)) for one in edited])


def patch_of(edited: Sequence[Edited]) -> str:
    """All changes as one patch, for `git apply` in that folder."""
    root = patch_root(edited)
    return "".join(one.patch(PurePath(os.path.relpath(os.path.abspath(one.file), root)).as_posix()) for one in edited)


def _started_as(run: Run, script: str) -> str | None:
    """How a corrected training script is started, in a folder of its own with whatever it imports from beside it. Only
    where it is known to be the entry: a launch script names it, or no other script lies there."""
    folder = os.path.dirname(os.path.abspath(script))
    name = PurePath(script).name
    beside = [s for s in run.scripts if s.endswith(".py") and os.path.dirname(os.path.abspath(s)) == folder]
    launch = [tree for tree in run.configs if tree.kind == "command" and tree.format == "shell" and tree.text is not None]
    named = [tree for tree in launch if name in (tree.text or "")]
    others = [os.path.abspath(path) for path in beside if PurePath(path).name != name]
    if len(named) == 1:
        others.append(os.path.abspath(named[0].file))
        start = f"bash {shlex.quote(PurePath(named[0].file).name)}"
    elif not others:
        start = f"python {shlex.quote(name)}"
    else:
        return None
    files = "".join(f"{shlex.quote(path)} " for path in others)
    return f"mkdir -p NEW_RUN && cp {files}{{new}}/{shlex.quote(name)} NEW_RUN/ && cd NEW_RUN && {start}"


def _runs_here(script: object, folder: str) -> bool:
    """Whether the program that a launch script starts is found from its folder."""
    words = str(script).split() if script else []
    return bool(words) and Path(folder, words[-1]).is_file()


def _line_with(run: Run, config: str) -> str | None:
    """The launch line that names this config, with the corrected one in its place."""
    for tree in run.configs:
        if tree.kind != "command" or tree.text is None:
            continue
        folder = os.path.dirname(os.path.abspath(tree.file))
        if not _runs_here(tree.get("script"), folder):
            continue
        joined = re.sub(r"\\\r?\n\s*", " ", tree.text)
        lines = [line.strip() for line in joined.splitlines() if config in line and _STARTS.search(line)]
        if len(lines) != 1 or "$" in lines[0]:
            continue
        words = [w for w in lines[0].split() if PurePath(w.strip("'\"").split("=")[-1]).name == config]
        if len(words) != 1:
            continue
        head, mark, _ = words[0].rpartition("=")
        new = f"{head}{mark}{{new}}/{config}"
        return f"{_folder(run, folder)} && {lines[0].replace(words[0], new)}"
    return None


def _folder(run: Run, folder: str) -> str:
    """Where to start: the old folder, or a new one with the scripts where the old run wrote into its own.

    In the old folder the next run would write over the old logs, and an auto-resume would take up the ill run.
    """
    inside = [os.path.abspath(s) for s in run.scripts if os.path.dirname(os.path.abspath(s)) == folder]
    inside = [path for path in inside if path.endswith(".py")]
    left = [f for f in (*run.files, *(c.path for c in run.checkpoints if c.exists)) if not f.endswith((".py", ".sh"))]
    if not any(os.path.abspath(f).startswith(folder + os.sep) for f in left) or not inside:
        return f"cd {shlex.quote(folder)}"
    kept = " ".join(shlex.quote(path) for path in inside)
    return f"mkdir -p NEW_RUN && cp {kept} NEW_RUN/ && cd NEW_RUN"
