"""What a written diagnosis claims, and what the record says to each claim. Plain frozen data, in and out of JSON.

A claim can be read from a text by this package, or given as JSON by a program that did the reading (docs/agents.md has the
schema). The kinds are few on purpose: each is a question that the record of a run can answer with numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from wheeltapper.finding import Place

Verdict = Literal["supported", "contradicted", "not-in-record", "undecided", "no-claim"]
Direction = Literal["up", "down", "flat", "better", "worse"]
Moment = Literal[
    "at", "first", "last", "highest", "lowest", "best", "reached", "level", "never-above", "never-below", "somewhere"
]  # reached: at its best, or its highest; level: where it stays
ClaimClock = Literal["step", "epoch"]

MEANING: dict[Verdict, str] = {
    "supported": "the record says so",
    "contradicted": "the record says otherwise",
    "not-in-record": "it speaks of something that this record does not hold",
    "undecided": "the record holds what it speaks of, and does not decide it",
    "no-claim": "advice, opinion or explanation: not a claim about this run",
}


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all claims share: the words they were read from and the line of the document."""

    text: str = ""
    line: int = 0


class Value(Claim, frozen=True, kw_only=True, tag="value"):
    """A logged quantity has a value: at a position, at its end, at its best, or nowhere above."""

    subject: tuple[str, ...]  # names of series; any of them may be meant
    low: float
    high: float  # equal to `low` but for a range
    moment: Moment = "somewhere"
    at: float | None = None
    clock: ClaimClock | None = None
    percent: bool = False
    slack: float = 0.0  # what the digits written leave open
    setting: str | None = None  # the knob that the same words may mean
    loose: bool = False  # no word ties the number to the curve: it may support, and does not contradict
    several: bool = False  # read from a sentence with several numbers, where the moment may belong to another of them


class Extreme(Claim, frozen=True, kw_only=True, tag="extreme"):
    """A logged quantity is best, highest or lowest at a position; its value is not said."""

    subject: tuple[str, ...]
    moment: Literal["best", "highest", "lowest"]
    at: float
    clock: ClaimClock | None = None


class Change(Claim, frozen=True, kw_only=True, tag="change"):
    """A logged quantity moves: in a direction, from and to values, since a position."""

    subject: tuple[str, ...]
    direction: Direction | None = None
    start: Value | None = None
    end: Value | None = None
    since: float | None = None
    begins: bool = False  # it is said to begin there, not only to go on
    clock: ClaimClock | None = None
    difference: float | None = None


class Setting(Claim, frozen=True, kw_only=True, tag="setting"):
    """The run was started with this setting (`value` None: only that the key is there)."""

    name: str  # a key as written, or the id of a knob
    value: Any = None
    slack: float = 0.0
    present: bool = True  # False: the claim is that there is no such key


class Edit(Claim, frozen=True, kw_only=True, tag="edit"):
    """A change of a setting that the text proposes."""

    name: str
    new: Any = None
    old: Any = None


class Blame(Claim, frozen=True, kw_only=True, tag="cause"):
    """A cause, by ids of `wheeltapper list` (causes, or what is refused as folklore)."""

    causes: tuple[str, ...]
    needs: tuple[str, ...] = ()  # conditions without which it cannot be: see answer_causes.NEEDS
    about: str = ""  # what it is said to have brought about: a name of a series, or nothing
    advice: bool = False  # it is proposed as a cure


class Checkpoint(Claim, frozen=True, kw_only=True, tag="checkpoint"):
    """A checkpoint that is named, to be kept or gone on from."""

    path: str | None = None
    step: float | None = None
    resume: bool = False
    best: bool = False


class Config(Claim, frozen=True, kw_only=True, tag="config"):
    """A block of settings that is proposed."""

    source: str
    format: Literal["yaml", "json", "python", "toml"] = "yaml"
    complete: bool = False  # it is said to be the whole configuration


class Command(Claim, frozen=True, kw_only=True, tag="command"):
    """A command line that is proposed or quoted."""

    source: str


class Sum(Claim, frozen=True, kw_only=True, tag="sum"):
    """Arithmetic that is written out: an expression and what it is said to give."""

    expression: str
    value: float
    slack: float = 0.0


class Speed(Claim, frozen=True, kw_only=True, tag="speed"):
    """How fast it goes."""

    low: float
    high: float
    unit: Literal["samples/s", "steps/s", "s/epoch"]


class State(Claim, frozen=True, kw_only=True, tag="state"):
    """What became of the run, in one word."""

    state: Literal[
        "finished", "stopped", "healthy", "ill", "not-finite", "all-finite", "overfits", "no-warnings", "going-on"
    ]
    subject: tuple[str, ...] = ()
    at: float | None = None
    clock: ClaimClock | None = None


class Prediction(Claim, frozen=True, kw_only=True, tag="prediction"):
    """A value that a later or next run is promised to have."""

    subject: tuple[str, ...] = ()
    low: float
    high: float
    at: float | None = None
    clock: ClaimClock | None = None
    percent: bool = False


class Opinion(Claim, frozen=True, kw_only=True, tag="opinion"):
    """Advice, explanation, politeness: nothing that a record can answer."""


AnyClaim = (
    Value
    | Extreme
    | Change
    | Setting
    | Edit
    | Blame
    | Checkpoint
    | Config
    | Command
    | Sum
    | Speed
    | State
    | Prediction
    | Opinion
)


class ClaimFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Claims that something else has read: what `review --claims FILE` takes."""

    claims: tuple[AnyClaim, ...]
    schema: str = "wheeltapper/claims"
    version: str = "1.0"


@dataclass(frozen=True, slots=True)
class Answer:
    """One claim and what the record says to it."""

    claim: AnyClaim
    verdict: Verdict
    why: str
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Unread:
    """Words that could not be read as a claim and that are not plainly none."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Review:
    """All claims of a document with their answers, in the order of the document."""

    document: str
    run: str
    answers: tuple[Answer, ...]
    unread: tuple[Unread, ...] = ()

    def count(self, verdict: Verdict) -> int:
        return sum(answer.verdict == verdict for answer in self.answers)
