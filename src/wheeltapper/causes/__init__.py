"""Causes: ONE FILE = ONE CAUSE: its documentation, how it is weighed, its remedies and its trial.

A cause is a module in this folder with

    \"\"\"Title, then the sections: What happens / How it shows / What else looks like this / When this is
    wrong / Fix / Trial / References.\"\"\"
    ID = "lr-too-high"                 # kebab-case; names the defect; equals the file name
    AREA = "learning rate"
    EXPLAINS = ("diverged", ...)       # ids of the signs it can bring about
    PRIOR = -2.0                       # bits: log2 odds against "something else" before any evidence
    def weigh(case: Case) -> Iterable[Evidence] | Excluded
    def remedies(case: Case) -> tuple[Remedy, ...]      # optional
    TRIAL = "..."                      # the shortest run that would decide
    CASES = (...)                      # optional: made runs with the probability that must come out

Evidence is in bits: log2 of how much likelier the observation is if this is the cause than if it is not.
+1 is a hint, +3 is strong (8 times likelier), +7 is decisive. `group` names what was observed; of several
items of one group only the strongest counts. The bits are judgements; `wheeltapper lab fit` measures
on runs of known truth how much each counts (weights.json), `wheeltapper lab score` how well that is calibrated (LOG.md).

Hard rules come first: a cause that cannot be (the knob has another value, the effect came before it, a
simulation excludes it) returns Excluded and takes no part.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import Any

from wheeltapper.causes._weights import Weights, weights
from wheeltapper.config.knobs import Knobs
from wheeltapper.errors import ContractError
from wheeltapper.finding import Evidence, Finding, Remedy
from wheeltapper.run.model import Run
from wheeltapper.run.onsets import began
from wheeltapper.signals import Signals
from wheeltapper.sources.record import ClockName

SECTIONS = (
    "What happens",
    "How it shows",
    "What else looks like this",
    "When this is wrong",
    "Fix",
    "Trial",
    "References",
)


@dataclass(frozen=True, slots=True)
class Excluded:
    """This cannot be the cause, and why; `folk` if people would say so all the same."""

    why: str
    folk: bool = False


@dataclass(frozen=True)
class Case:
    """All that a cause may look at."""

    signals: Signals
    findings: tuple[Finding, ...]
    audit: tuple[Finding, ...] = ()  # what was declared and is not so, from config and code
    trials: tuple[tuple[str, Evidence], ...] = ()  # (cause, what a trial of it says); from trial/read.py

    @property
    def run(self) -> Run:
        return self.signals.run

    @property
    def knobs(self) -> Knobs | None:
        found: Knobs | None = self.signals.maybe("knobs")
        return found

    def knob(self, knob_id: str, default: Any = None) -> Any:
        return default if self.knobs is None else self.knobs.value(knob_id, default)

    def found(self, *sign_ids: str, severity: str | None = None) -> list[Finding]:
        return [f for f in self.findings if f.id in sign_ids and (severity is None or f.severity == severity)]

    def audited(self, *ids: str) -> list[Finding]:
        return [f for f in self.audit if f.id in ids]

    def get(self, name: str) -> Any:
        """A signal, or None where it is absent."""
        return self.signals.maybe(name)

    def since(self, clock: ClockName, *sign_ids: str) -> float | None:
        """The earliest onset among the findings (of these signs) that make the run ill, on `clock`."""
        ill = [f for f in self.findings if f.severity == "ill" and (not sign_ids or f.id in sign_ids)]
        first = began(self.run, ill, clock)
        return first[0][0] if first else None


@cache
def causes() -> tuple[ModuleType, ...]:
    """Every cause, in name order."""
    found = []
    for info in pkgutil.iter_modules(__path__):
        if info.name.startswith("_"):
            continue
        module = importlib.import_module(f"{__name__}.{info.name}")
        for needed in ("ID", "AREA", "EXPLAINS", "PRIOR", "TRIAL", "weigh"):
            if not hasattr(module, needed):
                raise ContractError(f"the cause causes/{info.name}.py has no `{needed}`")
        if info.name.replace("_", "-") != module.ID:
            raise ContractError(f"causes/{info.name}.py calls itself {module.ID!r}; the file and the id must agree")
        found.append(module)
    return tuple(found)


def weighed(cause: ModuleType, case: Case, by: Weights | None = None) -> Excluded | tuple[Evidence, ...]:
    """A cause's evidence, strongest of each group only, strongest first, each by the weight measured for it. A trial that confirmed it outweighs a reason
    why it cannot be: the reason was thought, the trial was run."""
    answer: Excluded | Iterable[Evidence] = cause.weigh(case)
    tried = [evidence for cause_id, evidence in case.trials if cause_id == cause.ID]
    if isinstance(answer, Excluded):
        if not any(item.bits > 0 for item in tried):
            return answer
        answer = ()
    strongest: dict[str, Evidence] = {}
    for item in (*answer, *tried):
        old = strongest.get(item.group)
        if old is None or abs(item.bits) > abs(old.bits):
            strongest[item.group] = item
    known = weights() if by is None else by
    items = [replace(e, bits=e.bits * known.of(cause.ID, e.group)) for e in strongest.values()]
    return tuple(sorted(items, key=lambda e: -abs(e.bits)))


def proofs(case: Case, *audit_ids: str, bits: float = 7.0, hint: float = 2.0) -> list[Evidence]:
    """What config or code prove by themselves, as evidence; one group, so that two proofs of one thing are one.

    `hint`: the bits of what they only make likely.
    """
    found = case.audited(*audit_ids)
    return [
        Evidence(bits if f.grade == "is" else hint, f.summary, "proof" if f.grade == "is" else "code", f.places)
        for f in found
    ]


def remedies_of(cause: ModuleType, case: Case) -> tuple[Remedy, ...]:
    offer = getattr(cause, "remedies", None)
    found: tuple[Remedy, ...] = tuple(offer(case)) if offer is not None else ()
    return found
