"""Causes: ONE FILE = ONE CAUSE, as data: its page, what it shows, what excludes it, its remedies and its trial.

A cause is a module in this folder with

    \"\"\"Title, then the sections: What happens / How it shows / What else looks like this / When this is
    wrong / Fix / Trial / References.\"\"\"
    ID = "lr-too-low"                  # kebab-case; names the defect; equals the file name
    AREA = "learning rate"
    ABOUT = "learning"                 # or evaluation, efficiency, crash: the kind of trouble
    EXPLAINS = ("too-slow", ...)       # ids of the signs it can bring about
    SHOWS = {"rate-size": "low"}       # what nearly every run with this cause shows, where it can be looked at
    FORBIDS = {"diverged": "seen"}     # what excludes it; left out where nothing does
    PROVED_BY = ("rate-is-zero",)      # findings of config and code that speak for it; left out where none does
    TRIAL = "..."                      # the shortest run that would decide
    REMEDY = Remedy(...)               # what to change; or, where that depends on the run,
    def remedies(case: Case) -> tuple[Remedy, ...]

SHOWS and FORBIDS name observations ("low", "high": below, above the healthy band; "out": either; "in": inside it) and
signs ("seen", "clear"). The judge fits how much each observation counts; SHOWS stands in for runs that were never
measured, so it holds only what follows from the definition of the cause.

A module named normal_*.py is a pattern that is expected: it has `expect(case) -> str`, a sentence where it is at work.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType, ModuleType
from typing import Any, Literal, get_args

from wheeltapper.errors import ContractError
from wheeltapper.finding import Evidence, Finding, Remedy
from wheeltapper.observations import About, Observation, observations
from wheeltapper.program.checks import registry
from wheeltapper.reading.record import ClockName
from wheeltapper.rules.signs import signs
from wheeltapper.run.model import Run
from wheeltapper.run.onsets import began
from wheeltapper.settings.knobs import Knobs
from wheeltapper.study import Study

Word = Literal["low", "high", "out", "in", "seen", "clear"]
SECTIONS = (
    "What happens",
    "How it shows",
    "What else looks like this",
    "When this is wrong",
    "Fix",
    "Trial",
    "References",
)


@dataclass(frozen=True)
class Case:
    """All that a remedy may look at."""

    study: Study
    findings: tuple[Finding, ...]
    audit: tuple[Finding, ...] = ()  # what was declared and is not so, from config and code
    trials: tuple[tuple[str, Evidence], ...] = ()  # (cause, what a trial of it says); from trial/read.py

    @property
    def run(self) -> Run:
        return self.study.run

    @property
    def knobs(self) -> Knobs | None:
        found: Knobs | None = self.study.maybe("knobs")
        return found

    def knob(self, knob_id: str, default: Any = None) -> Any:
        return default if self.knobs is None else self.knobs.value(knob_id, default)

    def found(self, *sign_ids: str, severity: str | None = None) -> list[Finding]:
        return [f for f in self.findings if f.id in sign_ids and (severity is None or f.severity == severity)]

    def audited(self, *ids: str) -> list[Finding]:
        return [f for f in self.audit if f.id in ids]

    def get(self, name: str) -> Any:
        """A part of the study, or None where it is absent."""
        return self.study.maybe(name)

    def since(self, clock: ClockName, *sign_ids: str) -> float | None:
        """The earliest onset among the findings (of these signs) that make the run ill, on `clock`."""
        ill = [f for f in self.findings if f.severity == "ill" and (not sign_ids or f.id in sign_ids)]
        first = began(self.run, ill, clock)
        return first[0][0] if first else None


@dataclass(frozen=True, slots=True)
class Cause:
    """One defect that a run can have."""

    id: str
    title: str
    page: str
    area: str
    about: About
    shows: Mapping[str, Word]
    forbids: Mapping[str, Word]
    proved_by: tuple[str, ...]
    explains: tuple[str, ...]
    trial: str
    remedies: Callable[[Case], tuple[Remedy, ...]]


@dataclass(frozen=True, slots=True)
class Normal:
    """One pattern that people take for a defect and that is expected; `expect` says so where it is at work, else ""."""

    id: str
    title: str
    page: str
    area: str
    expect: Callable[[Case], str]


@cache
def causes() -> tuple[Cause, ...]:
    """Every cause, in name order."""
    return tuple(_cause(module) for module in _modules() if not hasattr(module, "NORMAL"))


@cache
def normals() -> tuple[Normal, ...]:
    """Every expected pattern, in name order."""
    found = [module for module in _modules() if hasattr(module, "NORMAL")]
    return tuple(Normal(m.ID, *_page(m), _given(m, "AREA"), _given(m, "expect")) for m in found)


def cause(cause_id: str) -> Cause | None:
    """The cause of this id; None where there is none."""
    return _by_id().get(cause_id)


def remedies_of(cause: Cause, case: Case) -> tuple[Remedy, ...]:
    """What to change if this is the cause, by the settings of the run."""
    return cause.remedies(case)


def fits(word: str, observation: Observation | None) -> bool:
    """Whether a word can be said of an observation with its band; None: of a sign."""
    if observation is None:
        return word in ("seen", "clear")
    low, high = (end is not None for end in observation.band)
    return {"low": low, "high": high, "out": low or high, "in": low or high}.get(word, False)


@cache
def _by_id() -> dict[str, Cause]:
    return {cause.id: cause for cause in causes()}


@cache
def _known() -> dict[str, Observation | None]:
    """Everything that SHOWS and FORBIDS may name; signs have no band."""
    seen: dict[str, Observation | None] = {sign.id: None for sign in signs()}
    return {**seen, **{observation.id: observation for observation in observations()}}


@cache
def _modules() -> tuple[ModuleType, ...]:
    names = [info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_")]
    modules = tuple(importlib.import_module(f"{__name__}.{name}") for name in names)
    for name, module in zip(names, modules, strict=True):
        if _given(module, "ID") != name.replace("_", "-"):
            raise ContractError(f"rules/causes/{name}.py calls itself {module.ID!r}; the file and the id must agree")
    return modules


def _given(module: ModuleType, name: str) -> Any:
    if not hasattr(module, name):
        raise ContractError(f"{module.__name__} has no `{name}`")
    return getattr(module, name)


def _page(module: ModuleType) -> tuple[str, str]:
    """Title and page; a section that is missing is an error."""
    page = inspect.cleandoc(module.__doc__ or "")
    missing = [section for section in SECTIONS if f"## {section}\n" not in page]
    if missing:
        raise ContractError(f"the page of {module.ID} has no section {', '.join(missing)}")
    return page.partition("\n\n")[0].replace("\n", " ").rstrip("."), page


def _said(module: ModuleType, name: str) -> Mapping[str, Word]:
    """SHOWS or FORBIDS, each word checked against what it is said of."""
    said: dict[str, Word] = getattr(module, name, {})
    for key, word in said.items():
        if key not in _known() or not fits(word, _known()[key]):
            raise ContractError(f"{module.ID}: {name} says {key!r} is {word!r}, which cannot be")
    return MappingProxyType(said)


def _offer(module: ModuleType) -> Callable[[Case], tuple[Remedy, ...]]:
    """The remedies as a function of the case, also where they are the same for every run."""
    if hasattr(module, "remedies"):
        offer: Callable[[Case], tuple[Remedy, ...]] = module.remedies
        return offer
    always = (_given(module, "REMEDY"),)
    return lambda _case: always


def _checks_that_name(cause_id: str) -> tuple[str, ...]:
    """The checks of programs whose finding speaks for this cause."""
    return tuple(check.id for check in registry().values() if check.cause == cause_id)


def _cause(module: ModuleType) -> Cause:
    about: About = _given(module, "ABOUT")
    shows = _said(module, "SHOWS")
    if about not in get_args(About) or not shows:
        raise ContractError(f"{module.ID} needs a kind of trouble (ABOUT) and what it shows (SHOWS)")
    title, page = _page(module)
    return Cause(
        id=module.ID,
        title=title,
        page=page,
        area=_given(module, "AREA"),
        about=about,
        shows=shows,
        forbids=_said(module, "FORBIDS"),
        proved_by=(*getattr(module, "PROVED_BY", ()), *_checks_that_name(module.ID)),
        explains=tuple(_given(module, "EXPLAINS")),
        trial=_given(module, "TRIAL"),
        remedies=_offer(module),
    )
