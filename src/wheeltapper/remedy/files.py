"""A fix on disk: the corrected configs, the plan, the pages and the case file, in a folder of their own.

A new folder appears whole or not at all: it is filled under another name and takes its own in one step. The
user's files are only read. A folder that holds anything we did not write is never written into.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec

from wheeltapper.config.write import replace_bytes, write
from wheeltapper.errors import InputError
from wheeltapper.remedy.case_file import NAME, Attempt, add_attempt, case_path, load_case
from wheeltapper.remedy.draft import file_names
from wheeltapper.remedy.fix import Fix
from wheeltapper.remedy.plan_file import PLAN, dump_plan, load_plan, seen_from

PAGES = ("fix.md", "fix.html")
CANNOT = "cannot be written: "  # as replace_bytes says it


def ours(folder: Path) -> bool:
    """A folder that a fix wrote: its plan names every file in it."""
    try:
        plan = load_plan(folder / PLAN)
    except InputError:
        return False
    known = {PLAN, NAME, "case.md", *PAGES, *plan.configs}
    return all(entry.name in known for entry in folder.iterdir())


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
    plan = seen_from(fix.plan, folder)
    plan = plan if case is None else msgspec.structs.replace(plan, case=os.path.relpath(case_path(case), folder))
    target = folder if held else folder.with_name(f".{folder.name}.part")
    names = file_names(fix.edited)
    try:
        if held:
            _clear(target)
        else:
            if target.exists():  # of a fix that was killed
                shutil.rmtree(target)
            target.mkdir(parents=True)
        for edited in fix.edited:
            write(edited, target / names[edited.file])
        for name, text in pages.items():
            replace_bytes(target / name, text.encode())
        replace_bytes(target / PLAN, dump_plan(plan).encode())
        if case is None:
            add_attempt(target / NAME, attempt, fix.diagnosis.run.name)
        if not held:
            if folder.is_dir():
                folder.rmdir()  # empty: a rename over it is not everywhere allowed
            os.replace(target, folder)
    except OSError as error:
        raise _cannot(folder, target, error.strerror or str(error)) from None
    except InputError as error:
        if target == folder or not (error.where or "").startswith(str(target)):
            raise
        raise _cannot(folder, target, error.what.removeprefix(CANNOT)) from None
    if case is not None:
        add_attempt(case_path(case), attempt, fix.diagnosis.run.name)
    return [folder / name for name in (*names.values(), PLAN, *pages)]


def _cannot(folder: Path, target: Path, why: str) -> InputError:
    """Told by the name that the user gave; the half-filled folder of another name goes."""
    if target != folder:
        shutil.rmtree(target, ignore_errors=True)
    return InputError(f"{CANNOT}{why}.", where=str(folder), do="Name another folder with -o.")


def _clear(folder: Path) -> None:
    """Corrected configs of the earlier fix go; the plan that names them is replaced right after."""
    for name in load_plan(folder / PLAN).configs:
        (folder / name).unlink(missing_ok=True)
