"""What a diagnosis says, as plain frozen data. All that a report shows is in here; renderers compute nothing.

Edit and Remedy are defined in finding.py, because causes (to the left of this layer) offer them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wheeltapper.finding import Clear, Edit, Evidence, Finding, Grade, Remedy, Safety, Unknown
from wheeltapper.judge.evidence import Seen
from wheeltapper.run.model import Run
from wheeltapper.shown import Shown
from wheeltapper.study import Study

Verdict = Literal["sound", "ill", "cannot-tell"]
Validity = Literal["yes", "no", "cannot-tell"]
Trouble = Literal["learning", "evaluation", "efficiency", "crash"]
State = Literal["finished", "crashed", "stopped", "running", "unknown"]

# The cause that is always among the causes: none of those we know.
SOMETHING_ELSE = "something-else"

__all__ = [
    "SOMETHING_ELSE",
    "BestCheckpoint",
    "Diagnosis",
    "Edit",
    "Expected",
    "Lines",
    "MetricVerdict",
    "Missing",
    "Progress",
    "RankedCause",
    "Remedy",
    "RuledOut",
    "Safety",
    "State",
    "Trouble",
    "Validity",
    "Verdict",
]


@dataclass(frozen=True, slots=True)
class MetricVerdict:
    """Can this number be believed and compared? `baseline` is what a trivial model would score."""

    series: str
    valid: Validity
    why: str
    baseline: float | None = None


@dataclass(frozen=True, slots=True)
class RankedCause:
    """A cause with its share of the probability and all that was weighed."""

    id: str
    title: str
    probability: float
    grade: Grade
    explains: tuple[str, ...] = ()  # ids of the signs
    evidence: tuple[Evidence, ...] = ()  # strongest first
    summary: str = ""
    remedies: tuple[Remedy, ...] = ()
    trial: str = ""
    onset: float | None = None  # the first of the signs it explains, on the clock of the run's progress

    @property
    def tried(self) -> float:
        """What a trial of this run says, in bits: above zero it confirmed the cause, below it refuted it."""
        return next((e.bits for e in self.evidence if e.group == "trial"), 0.0)


@dataclass(frozen=True, slots=True)
class RuledOut:
    """Suspected, and not the cause; or a folk rule that the run invites and the evidence refuses."""

    id: str
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class BestCheckpoint:
    """The checkpoint to keep. `path` None: the best moment is known, and no file of it."""

    path: str | None
    step: float | None
    metric: str
    value: float
    why: str
    exists: bool
    nothing: str = ""  # why even the best moment holds nothing to keep
    noise: float | None = None  # sigma of the metric where it was sound; None: too few evaluations to say
    equal: int = 1  # evaluations that are as good within noise


@dataclass(frozen=True, slots=True)
class Missing:
    """What to collect next: `bits` says how much it would decide between the causes in `decides`."""

    what: str
    why: str
    decides: tuple[str, ...] = ()
    bits: float = 0.0


@dataclass(frozen=True, slots=True)
class Expected:
    """A pattern that looks alarming and is normal here."""

    id: str
    title: str
    why: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the run came. `at` and `total` are on `clock`."""

    state: State = "unknown"
    at: float | None = None
    total: float | None = None
    clock: str | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """From which probability on a run is called ill, and below which sound."""

    ill: float = 0.9
    sound: float = 0.07


@dataclass(frozen=True, slots=True, repr=False)
class Diagnosis(Shown):
    """The whole answer about one run."""

    run: Run
    verdict: Verdict
    headline: str
    p_ill: float = 0.5  # probability that something is wrong, as calibrated on left-out runs
    trouble: Trouble | None = None  # which kind; None where nothing is wrong
    why: tuple[str, ...] = ()  # at most three lines
    todo: tuple[str, ...] = ()
    validity: tuple[MetricVerdict, ...] = ()
    findings: tuple[Finding, ...] = ()  # most severe first
    clears: tuple[tuple[str, Clear], ...] = ()  # (sign id, answer)
    unknowns: tuple[tuple[str, Unknown], ...] = ()
    causes: tuple[RankedCause, ...] = ()  # most probable first, SOMETHING_ELSE among them
    ruled_out: tuple[RuledOut, ...] = ()
    expected: tuple[Expected, ...] = ()
    best: BestCheckpoint | None = None
    missing: tuple[Missing, ...] = ()  # most decisive first
    progress: Progress = Progress()
    prognosis: object | None = None  # set by prognosis/, which lies to the right
    notes: tuple[str, ...] = ()
    seen: tuple[Seen, ...] = ()  # every observation and sign, with its state
    study: Study | None = None  # all that is known about the run, each thing computed once
