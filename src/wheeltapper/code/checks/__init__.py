"""Checks of training code: one file, one check, registered by being in this folder.

A check is a module with `check(code: Code) -> Iterable[Finding]`. Its id is the file's name with dashes,
and its docstring is its page, in fixed sections: What it sees, Why it matters, How it decides, When it is
wrong. A check is silent unless it is sure; grade "is" only where the code proves the claim.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from types import ModuleType

from wheeltapper.code.reading import Code
from wheeltapper.errors import ContractError
from wheeltapper.finding import Finding

SECTIONS = ("What it sees", "Why it matters", "How it decides", "When it is wrong")


@cache
def checks() -> dict[str, ModuleType]:
    """Every check by id, in name order."""
    found = {}
    for info in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{info.name}")
        if not hasattr(module, "check") or missing_sections(module):
            raise ContractError(f"code/checks/{info.name}.py has no check() or misses: {missing_sections(module)}")
        found[info.name.replace("_", "-")] = module
    return found


def missing_sections(module: ModuleType) -> list[str]:
    return [s for s in SECTIONS if f"\n{s}\n" not in (module.__doc__ or "")]


def title(module: ModuleType) -> str:
    """The first line of a check's page, without its full stop."""
    return (module.__doc__ or "").strip().splitlines()[0].rstrip(".")


def section(module: ModuleType, name: str) -> str:
    """One section of a check's page."""
    match = re.search(rf"\n{name}\n-+\n(.*?)(?=\n[A-Z][^\n]*\n-+\n|\Z)", module.__doc__ or "", re.S)
    return match[1].strip() if match else ""


def run_checks(code: Code) -> Iterator[Finding]:
    """Every finding of every check on one program, in the order of the checks' names; none if it does not train."""
    if not code.trains:
        return
    for name, module in checks().items():
        for finding in module.check(code):
            if finding.id != name:
                raise ContractError(f"code/checks/{module.__name__} reports as {finding.id}")
            yield finding
