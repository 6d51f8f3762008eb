"""The running history of one case: every attempt, what it changed and what came of it, refuted causes included.

`case.json` is for programs, `case.md` for people; both lie beside the plan. Attempts are only ever added. Each
write replaces the file in one step, so a killed process leaves the old history or the new one.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from wheeltapper.errors import InputError
from wheeltapper.limits import is_plain_file
from wheeltapper.remedy.draft import run_hash
from wheeltapper.remedy.followup import Followup
from wheeltapper.remedy.plan import Plan
from wheeltapper.remedy.plan_file import PLAN, load_plan
from wheeltapper.run.model import Run
from wheeltapper.settings.locked import locked
from wheeltapper.settings.write import replace_bytes

NAME = "case.json"
MOST_BYTES = 50_000_000
MOST_CASES = 50  # looked at beside one run


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Verdict(_Strict, frozen=True):
    cause: str
    status: str
    why: str = ""
    dose: bool = False  # REFUTED by one value of a number only


class Change(_Strict, frozen=True):
    knob: str
    old: Any
    new: Any


class Attempt(_Strict, frozen=True):
    """One entry: a plan that was made, a run that was held against it, or a trial."""

    what: Literal["plan", "followup", "trial"]
    date: str
    run: str
    hash: str
    headline: str = ""
    option: str = ""
    edits: tuple[Change, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    kept: int = 0
    broken: tuple[str, ...] = ()
    waiting: int = 0
    todo: tuple[str, ...] = ()


class CaseFile(_Strict, frozen=True):
    version: Literal[1]
    name: str
    attempts: tuple[Attempt, ...] = ()

    @property
    def refuted(self) -> dict[str, str]:
        """Causes that an attempt ruled out, and how; one that was fixed later is not among them.

        Where only one value of a number was tried, it takes two attempts: a rate a hundred times too high breaks
        at half of it as well.
        """
        out: dict[str, str] = {}
        once: set[str] = set()
        for attempt in self.attempts:
            for verdict in attempt.verdicts:
                if verdict.status == "REFUTED" and verdict.dose and verdict.cause not in once:
                    once.add(verdict.cause)
                elif verdict.status == "REFUTED":
                    out[verdict.cause] = f"{attempt.run}: {verdict.why}"
                elif verdict.status in ("FIXED", "CONFIRMED"):
                    out.pop(verdict.cause, None)
        return out

    @property
    def confirmed(self) -> frozenset[str]:
        """Causes that a trial confirmed, and nothing refuted since."""
        told = {v.cause: v.status for a in self.attempts for v in a.verdicts if v.status in ("CONFIRMED", "REFUTED")}
        return frozenset(cause for cause, status in told.items() if status == "CONFIRMED")


def case_path(path: str | Path) -> Path:
    """The file of a case, given that or its page, or a plan of it or its folder: a later fix names the case it goes on
    with in its plan, also where an earlier fix in the same folder had begun one of its own."""
    file = Path(path)
    if not file.is_dir():
        if file.name == PLAN:
            return file.parent / load_plan(file).case
        return file.with_name(NAME) if file.name == "case.md" else file
    if (file / PLAN).is_file():
        try:
            return case_path(file / PLAN)
        except InputError:
            if not (file / NAME).exists():
                raise
    return file / NAME


def load_case(path: str | Path) -> CaseFile:
    """A case by its file, or by the folder of one of its fixes."""
    file = case_path(path)
    try:
        if file.stat().st_size > MOST_BYTES:
            raise InputError("this is no case file: it is far too long.", where=str(file))
        if not is_plain_file(file):
            raise InputError("this is no case file: a pipe, a socket or a device is not opened.", where=str(file))
        data = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"the case cannot be read: {error.strerror}.",
            where=str(file),
            do="`wheeltapper fix RUN -o DIR` begins one.",
        ) from None
    try:
        return msgspec.json.decode(data, type=CaseFile)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"this is no case file, or it is damaged: {error}.",
            where=str(file),
            do="Give case.json, or the folder of a fix.",
        ) from None


def cases_of(run: Run) -> list[Path]:
    """Folders of fixes in which this run was held against a plan: beside the run, and where we are."""
    root = Path(run.root)
    home = root if root.is_dir() else root.parent
    digest = run_hash(run)
    found: dict[Path, None] = {}
    for place in (home.resolve().parent, Path.cwd()):
        with contextlib.suppress(OSError):
            found |= dict.fromkeys(place / e.name for e in os.scandir(place) if e.name.endswith("-fix") and e.is_dir())
    out = []
    for folder in sorted(found)[:MOST_CASES]:
        with contextlib.suppress(InputError):  # no case, or not ours
            attempts = load_case(folder).attempts
            if any(a.what == "followup" and a.hash == digest for a in attempts):
                out.append(folder)
    return out


def add_attempt(path: Path, attempt: Attempt, name: str) -> CaseFile:
    """Add one attempt to the case (begin it, where there is none). The same attempt twice in a row is one. Processes that
    add at the same time take turns, so that none of them writes over what another added."""
    with locked(path.parent):
        return _add(path, attempt, name)


def _add(path: Path, attempt: Attempt, name: str) -> CaseFile:
    page = path.with_name("case.md")
    if page.exists() and not path.exists():
        raise InputError("a case.md lies here without its case.json, so it is not ours to write over.", where=str(page))
    known = load_case(path) if path.exists() else CaseFile(1, name)
    if known.attempts and _same(known.attempts[-1], attempt):
        return known
    case = CaseFile(1, known.name, (*known.attempts, attempt))
    replace_bytes(path, msgspec.json.format(msgspec.json.encode(case), indent=2) + b"\n")
    replace_bytes(page, case_markdown(case).encode())
    return case


def _same(a: Attempt, b: Attempt) -> bool:
    return msgspec.structs.replace(a, date="") == msgspec.structs.replace(b, date="")


def planned(plan: Plan, date: str) -> Attempt:
    edits = tuple(Change(e.knob, e.old, e.new) for e in plan.edits)
    verdicts = tuple(Verdict(i.cause, i.how, i.remedy) for i in plan.issues)
    return Attempt("plan", date, plan.source.run, plan.source.hash, plan.source.headline, plan.option, edits, verdicts)


def followed(result: Followup, date: str) -> Attempt:
    verdicts = tuple(Verdict(i.cause, i.status, i.why, i.dose) for i in result.issues)
    edits = tuple(Change(e.knob, e.wanted, e.found) for e in result.edits)
    broken = tuple(f"{p.what}: {p.saw}" for p in result.promises if p.status == "broken")
    return Attempt(
        "followup", date, result.run, result.hash, result.headline, result.plan.option, edits, verdicts,
        sum(p.status == "kept" for p in result.promises), broken,
        sum(p.status == "not yet" for p in result.promises), result.todo,
    )  # fmt: skip


def case_markdown(case: CaseFile) -> str:
    """The history for people."""
    lines = [f"# Case: {_cell(case.name)}", ""]
    refuted = case.refuted
    if refuted:
        lines += ["Refuted so far:", "", *(f"- `{c}`: {_cell(why)}" for c, why in refuted.items()), ""]
    for number, attempt in enumerate(case.attempts, start=1):
        kind = {"plan": f"plan, option {attempt.option}", "followup": "followed up", "trial": "trial"}[attempt.what]
        lines += [f"## {number}. {attempt.date}: {_cell(attempt.run)} ({kind})", "", _cell(attempt.headline), ""]
        lines += _attempt_lines(attempt)
    return "\n".join(lines).rstrip() + "\n"


def _attempt_lines(attempt: Attempt) -> Sequence[str]:
    out: list[str] = []
    for edit in attempt.edits:
        told = f"planned {edit.old}, found {edit.new}" if attempt.what == "followup" else f"{edit.old} → {edit.new}"
        out.append(f"- `{edit.knob}`: {_cell(told)}")
    out += [f"- **{v.status}** `{v.cause}`: {_cell(v.why)}" for v in attempt.verdicts]
    if attempt.what == "followup":
        out.append(f"- promises: {attempt.kept} kept, {len(attempt.broken)} broken, {attempt.waiting} not yet testable")
        out += [f"  - broken: {_cell(line)}" for line in attempt.broken]
        out += [f"- next: {_cell(line)}" for line in attempt.todo]
    return [*out, ""]


def _cell(text: Any) -> str:
    """Text of a run cannot become markup."""
    flat = " ".join(str(text).split())
    for plain, safe in (("&", "&amp;"), ("<", "&lt;"), ("`", "'"), ("[", "\\["), ("*", "\\*"), ("|", "\\|")):
        flat = flat.replace(plain, safe)
    return flat
