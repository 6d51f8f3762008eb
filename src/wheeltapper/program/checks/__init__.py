"""Checks of training code: one file, one check, registered by being in this folder.

A check is a module with `check(code: Code) -> Iterable[Finding]`. Its id is the file's name with dashes,
and its docstring is its page, in fixed sections: What it sees, Why it matters, How it decides, When it is
wrong. A check is silent unless it is sure; grade "is" only where the code proves the claim.

CAUSE is the id of the cause that the finding speaks for; None: it is a cause of its own, under its own id.
DECIDES: whether the proof alone makes the run another one than was asked for, or breaks it. DECIDES_IF(finding, resumed),
where it is there, is asked as well; so is CAUSE_OF(finding), where one check speaks for several causes.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType

from wheeltapper.errors import ContractError
from wheeltapper.finding import Finding
from wheeltapper.limits import Failure, guarded
from wheeltapper.program.ignored import is_ignored
from wheeltapper.program.reading import Code

SECONDS = 60.0  # CPU time of one check on one program; the slowest of ours takes a second on the largest repository
SECTIONS = ("What it sees", "Why it matters", "How it decides", "When it is wrong")


@dataclass(frozen=True)
class Check:
    """What is known of a check without running it."""

    id: str
    title: str
    cause: str | None  # the cause its finding speaks for; None: it is its own
    decides: bool
    module: ModuleType

    def cause_of(self, finding: Finding) -> str | None:
        """The cause that this finding speaks for, where one check knows several."""
        asked = getattr(self.module, "CAUSE_OF", None)
        return (asked(finding) if asked is not None else None) or self.cause

    def decides_for(self, finding: Finding, *, resumed: bool = False) -> bool:
        """Whether this finding alone decides: a setting that does nothing where it was given, a resume where there was one."""
        asked = getattr(self.module, "DECIDES_IF", None)
        return self.decides or (asked is not None and bool(asked(finding, resumed)))


@cache
def checks() -> dict[str, ModuleType]:
    """Every check by id, in name order."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        wants = [name for name in ("check", "CAUSE", "DECIDES") if not hasattr(module, name)]
        if wants or missing_sections(module):
            raise ContractError(f"program/checks/{info.name}.py misses: {[*wants, *missing_sections(module)]}")
        found[info.name.replace("_", "-")] = module
    return found


@cache
def registry() -> dict[str, Check]:
    """Every check by id, with the cause it speaks for and whether its proof decides."""
    return {id: Check(id, title(module), module.CAUSE, bool(module.DECIDES), module) for id, module in checks().items()}


def missing_sections(module: ModuleType) -> list[str]:
    return [s for s in SECTIONS if f"\n{s}\n" not in (module.__doc__ or "")]


def title(module: ModuleType) -> str:
    """The first line of a check's page, without its full stop."""
    return (module.__doc__ or "").strip().splitlines()[0].rstrip(".")


def section(module: ModuleType, name: str) -> str:
    """One section of a check's page."""
    match = re.search(rf"\n{name}\n-+\n(.*?)(?=\n[A-Z][^\n]*\n-+\n|\Z)", module.__doc__ or "", re.S)
    return match[1].strip() if match else ""


def _findings(module: ModuleType, code: Code) -> list[Finding]:
    return list(module.check(code))


def run_checks(code: Code, failed: list[str] | None = None) -> Iterator[Finding]:
    """Every finding of every check on one program, in the order of the checks' names; none if it does not train.
    A check that fails on a program does not take the others with it; `failed` gets a line about it."""
    if not code.trains:
        return
    for name, module in checks().items():
        found = guarded(partial(_findings, module, code), seconds=SECONDS)
        if isinstance(found, Failure):
            if failed is not None:
                failed.append(f"{code.program.entry.name}: the check {name} failed: {found.text} (in {found.where})")
            continue
        for finding in found:
            if finding.id != name:
                raise ContractError(f"program/checks/{module.__name__} reports as {finding.id}")
            if not is_ignored(code.program, finding):
                yield finding
