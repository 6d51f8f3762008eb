"""A fix on disk: the corrected configs, the plan, the pages and the case file, in a folder of their own.

The folder appears whole or not at all: it is filled under another name and takes its own in one step; an earlier fix
there changes places with it. The user's files are only read. A folder that holds anything we did not write, or a file of
ours that was edited since, is never written into: plan.yaml ends with the digest of every file that was written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wheeltapper.errors import InputError
from wheeltapper.remedy.case_file import NAME, Attempt, add_attempt, case_path, load_case
from wheeltapper.remedy.draft import file_names
from wheeltapper.remedy.fix import Fix
from wheeltapper.remedy.launch import PATCH
from wheeltapper.remedy.plan_file import PLAN, dump_plan, load_plan, seen_from
from wheeltapper.settings.locked import exchange, locked
from wheeltapper.settings.write import replace_bytes, write

PAGES = ("fix.md", "fix.html", PATCH)
CANNOT = "cannot be written: "  # as replace_bytes says it


def ours(folder: Path) -> bool:
    """A folder that a fix wrote: its plan names every file in it."""
    try:
        plan = load_plan(folder / PLAN)
    except InputError:
        return False
    known = {PLAN, NAME, "case.md", *PAGES, *plan.configs}
    # A writer that was killed leaves its file under a name of its own (settings/write.py).
    halves = re.compile(rf"\.({'|'.join(map(re.escape, known))})\..+\.tmp")
    return all(entry.name in known or halves.fullmatch(entry.name) for entry in folder.iterdir())


def write_fix(
    fix: Fix, folder: Path, pages: Mapping[str, str], attempt: Attempt, case: Path | None = None
) -> list[Path]:
    """Write everything; the paths, in the order a reader wants them. `case`: the history to continue."""
    assert fix.plan is not None
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder} is a file.", do="Name a folder with -o.")
    held = folder.is_dir() and any(folder.iterdir())
    if held and not ours(folder):
        raise InputError(
            f"{folder} holds files that no fix wrote; nothing was written.", do="Name another folder with -o."
        )
    if case is not None:
        load_case(case)  # a history that cannot be read stops us before anything is written
    if held and (changed := edited_since(folder)):
        raise InputError(
            f"{', '.join(changed)} was edited since the fix was written; nothing was written.",
            where=str(folder),
            do="Name another folder with -o.",
        )
    plan = seen_from(fix.plan, folder)
    plan = plan if case is None else msgspec.structs.replace(plan, case=os.path.relpath(case_path(case), folder))
    whole = folder.resolve()  # `-o .` has no name of its own
    target = whole.with_name(f".{whole.name}.part")
    names = file_names(fix.edited)
    try:
        # Alone beside the folder, and in it: an attempt that is added to its case meanwhile would be lost.
        with locked(whole.parent), locked(whole) if held else contextlib.nullcontext():
            if target.exists():  # of a fix that was killed
                shutil.rmtree(target)
            target.mkdir()
            for edited in fix.edited:
                write(edited, target / names[edited.file])
            for name, text in pages.items():
                replace_bytes(target / name, text.encode())
            replace_bytes(target / PLAN, sealed(dump_plan(plan), target).encode())
            for name in (NAME, "case.md") if held else ():
                if (whole / name).exists():
                    shutil.copy2(whole / name, target / name)
            if case is None:
                add_attempt(target / NAME, attempt, fix.diagnosis.run.name)
            _take_place(target, whole)
    except OSError as error:
        raise _cannot(folder, target, error.strerror or str(error)) from None
    except InputError as error:
        if not (error.where or "").startswith(str(target)):
            raise
        raise _cannot(folder, target, error.what.removeprefix(CANNOT)) from None
    if case is not None:
        add_attempt(case_path(case), attempt, fix.diagnosis.run.name)
    return [folder / name for name in (*names.values(), PLAN, *pages)]


def _take_place(filled: Path, folder: Path) -> None:
    """The filled folder takes the name. What was there before is whole until then, and gone after."""
    if not folder.exists():
        os.replace(filled, folder)
        return
    in_use = Path.cwd().is_relative_to(folder)  # a shell that stands in it would stand in a folder that is gone
    if not in_use and exchange(filled, folder):
        shutil.rmtree(filled)
        return
    # File by file, each in one step; the plan last, as it names the others.
    before = set(load_plan(folder / PLAN).configs) if (folder / PLAN).exists() else set()
    new = sorted((path.name for path in filled.iterdir()), key=lambda name: (name == PLAN, name))
    for name in new:
        os.replace(filled / name, folder / name)
    for name in before - set(new):
        (folder / name).unlink(missing_ok=True)
    filled.rmdir()


_SEAL = "# What was written, to know whether it was edited since:"


def sealed(plan: str, folder: Path) -> str:
    """The text of the plan with the digests of the files beside it, and its own."""
    text = plan.rstrip("\n") + "\n"
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())} | {PLAN: text.encode()}
    lines = [f"# {_digest(data)} {name}" for name, data in files.items()]
    return "\n".join([text + _SEAL, *lines, ""])


def edited_since(folder: Path) -> list[str]:
    """Files of an earlier fix that are not as they were written; none where an older version wrote no digests."""
    text, found, seal = (folder / PLAN).read_text(encoding="utf-8").partition(_SEAL)
    if not found:
        return []
    known = dict(line[2:].split(" ", 1)[::-1] for line in seal.splitlines() if line.startswith("# ") and " " in line[2:])
    out = []
    for name, digest in known.items():
        try:
            data = text.encode() if name == PLAN else (folder / name).read_bytes()
        except OSError:
            continue  # thrown away: nothing of the user's is lost
        if _digest(data) != digest:
            out.append(name)
    return out


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _cannot(folder: Path, target: Path, why: str) -> InputError:
    """Told by the name that the user gave; the half-filled folder of another name goes."""
    shutil.rmtree(target, ignore_errors=True)
    return InputError(f"{CANNOT}{why}.", where=str(folder), do="Name another folder with -o.")
