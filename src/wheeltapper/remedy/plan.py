"""The plan: what is changed, what must then be seen, and what to do if it is not.

Every number in it says where it comes from; a number that has no source is not promised. The shape is strict: a
misspelt key of its file (plan_file.py) is an error, not a promise that is silently dropped.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from wheeltapper.reading.record import ClockName

Option = Literal["A", "B", "C"]
# apply: in the corrected config. try: in it as well, and a trial must decide. code: lines that a person must
# change. open: suspected, nothing is changed for it.
How = Literal["apply", "try", "code", "open"]


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    pass


class Source(_Strict, frozen=True):
    """The run that was diagnosed."""

    run: str
    hash: str
    verdict: str
    headline: str
    progress: str = ""


class PlannedEdit(_Strict, frozen=True):
    """One setting from its value then to its value now."""

    knob: str
    old: Any
    new: Any
    cause: str
    why: str = ""
    place: str = ""  # file:line of the old value


class SignThen(_Strict, frozen=True):
    """What was seen in the old run. `by`: the position where its absence can be told."""

    id: str
    summary: str
    series: str | None = None
    clock: ClockName | None = None
    onset: float | None = None
    by: float | None = None


class Level(_Strict, frozen=True):
    """Where a score ended in the old run: better or worse is told by it."""

    series: str
    clock: ClockName
    at: float
    value: float
    noise: float
    better: Literal["up", "down"]


class Rates(_Strict, frozen=True):
    """The learning rate that the old run logged. Where an edit is to change it and it is so again, nothing changed."""

    series: str
    clock: ClockName
    at: tuple[float, ...]
    values: tuple[float, ...]


class Issue(_Strict, frozen=True):
    """One cause that is treated, or that stays open."""

    cause: str
    title: str
    probability: float
    how: How
    remedy: str = ""
    predicts: str = ""
    knobs: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    signs: tuple[SignThen, ...] = ()
    trial: str = ""
    proved: bool = False  # by code or settings


class Resume(_Strict, frozen=True):
    """Where the next run continues."""

    checkpoint: str
    at: float | None = None
    clock: ClockName | None = None
    why: str = ""


class Band(_Strict, frozen=True):
    """A value that is expected at a position. One side may be open."""

    metric: str
    clock: ClockName
    at: float
    source: str  # where the numbers come from; never empty
    low: float | None = None
    high: float | None = None
    within: float = 0.0  # how far from `at` a logged value still counts


class Warn(_Strict, frozen=True):
    """A threshold that asks for a look at once, and its reason."""

    metric: str
    reason: str
    above: float | None = None
    below: float | None = None
    not_finite: bool = False
    after: float | None = None
    clock: ClockName | None = None


class Rule(_Strict, frozen=True, rename={"when": "if"}):
    """If this is seen, then do that."""

    when: str
    then: str


class Monitor(_Strict, frozen=True):
    """How often to look, and until when."""

    look: str
    why: str


class Question(_Strict, frozen=True):
    """What is not known, and the test that decides it."""

    question: str
    test: str
    decides: tuple[str, ...] = ()


class Plan(_Strict, frozen=True):
    """The next run, promised."""

    version: Literal[1]
    option: Option
    source: Source
    made: str = ""
    edits: tuple[PlannedEdit, ...] = ()
    resume: Resume | None = None
    issues: tuple[Issue, ...] = ()
    levels: tuple[Level, ...] = ()
    rates: Rates | None = None
    expected: tuple[Band, ...] = ()
    warnings: tuple[Warn, ...] = ()
    contingencies: tuple[Rule, ...] = ()
    monitoring: tuple[Monitor, ...] = ()
    questions: tuple[Question, ...] = ()
    settings: dict[str, Any] = {}  # of the old run, by knob: what else changes is seen by them
    configs: tuple[str, ...] = ()  # corrected files, beside the plan
    case: str = "case.json"  # the running history, from the folder of the plan
