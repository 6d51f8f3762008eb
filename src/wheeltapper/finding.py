"""The three answers, and the evidence they carry.

A question about a run is answered by Finding (yes, and here is where), Clear (looked, and no) or
Unknown (could not look, and what is missing). Never by None: "fine" and "could not look" are
different facts (design/003-three-answers.md).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

# What a claim may say of itself (KNOWLEDGE §0): decided by arithmetic or code; statistical with a stated
# error rate; compatible with several causes; known to be normal here.
Grade = Literal["is", "is-p", "suspected", "expected"]
# ill: the run is unsound if this stands. watch: worth knowing, does not make a run ill. note: a fact.
Severity = Literal["ill", "watch", "note"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a claim can be checked: a line of a file, or a stretch of a series."""

    file: str | None = None
    line: int | None = None
    column: int | None = None
    series: str | None = None
    at: float | None = None

    def __str__(self) -> str:
        if self.file:
            spot = self.file
            if self.line is not None and self.line >= 0:
                spot += f":{self.line}"
                if self.column is not None:
                    spot += f":{self.column}"
            return spot
        if self.series:
            return f"{self.series}[{self.at:g}]" if self.at is not None else self.series
        return "?"


@dataclass(frozen=True, slots=True)
class Finding:
    """A sign was seen. `onset` and `end` are positions on `clock` of the series it was seen in."""

    id: str
    summary: str  # one sentence with its numbers
    severity: Severity
    grade: Grade
    series: str | None = None
    clock: str | None = None
    onset: float | None = None
    end: float | None = None  # None: still so at the end of the record
    onset_epoch: float | None = None  # the same onset in epochs, where the record lets us say
    p: float | None = None  # error rate of the claim, for grade "is-p"
    numbers: dict[str, float] = field(default_factory=dict)
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """Looked, and it is not so."""

    why: str = ""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Could not look; `needs` names what would let us."""

    why: str
    needs: tuple[str, ...] = ()


Answer = Finding | Clear | Unknown


@dataclass(frozen=True, slots=True)
class Evidence:
    """One weighed observation about a cause: bits for (+) or against (−), the sentence, the place.

    Items of one `group` say the same thing; only the strongest of them counts.
    """

    bits: float
    text: str
    group: str
    places: tuple[Place, ...] = ()


# safe: the meaning of the run is kept or a plain error is mended. try: needs a trial. advice: shown, never
# applied by us.
Safety = Literal["safe", "try", "advice"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One knob (or dotted key) from its value now to another. `old` None: not set now; `new` None: taken out."""

    knob: str
    old: Any
    new: Any
    why: str = ""
    unit: str | None = None  # of `new`: steps, epochs, ...; None: the unit that the setting is written in


@dataclass(frozen=True, slots=True)
class Remedy:
    """What to change, how safe that is, and what must then be seen (else the diagnosis is withdrawn)."""

    text: str
    edits: tuple[Edit, ...] = ()
    safety: Safety = "advice"
    predicts: str = ""
