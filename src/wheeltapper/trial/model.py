"""The words of a trial as plain frozen data: Outcome, Rule, Verdict for compare.py; Arm, Fork for plan and driver.

The driver asks compare.py, after every repeat that ends, on all outcomes so far (so it must survive peeking):

    decide(control: Sequence[Outcome], arm: Sequence[Outcome], rule: Rule, *, aa: Sequence[Outcome] = ()) -> Verdict
    decide_all(control, arms: Mapping[str, Sequence[Outcome]], rule, *, aa=()) -> dict[str, Verdict]   # Holm over arms

`aa` are repeats of the control with seeds that the control has as well: their paired differences are the noise
floor. Where they agree to the last bit one pair is still no proof (compare.py says why).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from wheeltapper.finding import Edit

Answer = Literal["confirmed", "refuted", "cannot-tell"]
# The ladder of KNOWLEDGE TRL-14; each rung stands on those before it.
Rung = Literal["none", "reproduced", "removed", "re-inserted", "dose-response", "specific"]
RUNGS: tuple[Rung, ...] = ("none", "reproduced", "removed", "re-inserted", "dose-response", "specific")
# control: nothing changed, must show the symptom. aa: the control again with the same seed: the noise floor.
# remedy: one cause mended. dose: the same knob at another value. reinsert: the mended run with the fault put back.
# placebo: a knob that should do nothing.
ArmKind = Literal["control", "aa", "remedy", "dose", "reinsert", "placebo"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one repeat of an arm came out.

    Outcomes of two arms with the same `seed` are a pair: same data order, same noise, same start.
    `value` is the endpoint of Rule (mean of the last evaluations, never the best); NaN or inf are values (a
    run that broke has them), None means that the record tells no value. `broke`: the symptom was there;
    None: the record does not tell. `curve` is the metric over steps, as far as it was logged. `onset` is the
    step from the fork at which the symptom began, where it did and the record tells.
    """

    seed: int
    value: float | None
    broke: bool | None
    steps: float = 0.0
    curve: tuple[tuple[float, float], ...] = ()
    note: str = ""
    onset: float | None = None
    rates: tuple[float, float] | None = None  # highest and last learning rate, for compare.rate_bias
    print: str = ""  # hash of the training losses: a score that stands still is the same in any two runs


@dataclass(frozen=True, slots=True)
class Rule:
    """The decision rule, fixed before anything is run and written into the ledger.

    kind "symptom": does the symptom (`broke`) go away? kind "difference": is the endpoint better than the
    control's, pair by pair? `delta` is the smallest difference of the endpoint that matters, in its own unit;
    None: twice the noise floor of the A/A pairs. `arms` is the number of claims made at once (Holm).
    """

    kind: Literal["symptom", "difference"]
    metric: str  # canonical series name of the endpoint
    better: Literal["up", "down"]
    delta: float | None = None
    symptom: str = ""  # id of the sign that must go away
    alpha: float = 0.05  # chance of "confirmed" for a cause that is not one, over all arms and all looks
    beta: float = 0.05  # chance of "refuted" for a cause that is one, over all looks
    arms: int = 1
    most_pairs: int = 8  # repeats beyond this are bought only with what decided arms left over
    last: int = 3  # evaluations averaged for the endpoint
    original: float | None = None  # the endpoint of the run that is tried: a control as bad as it shows the trouble again


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a comparison of one arm with the control says. `why` is one or two plain sentences with the numbers."""

    answer: Answer
    why: str
    pairs: int = 0
    effect: float | None = None  # arm minus control, on the endpoint
    low: float | None = None  # its confidence sequence at 1 - 2 alpha: alpha on each side
    high: float | None = None
    p: float | None = None  # valid at any look, before Holm
    more: int | None = None  # further pairs that would probably tell; None: decided, or never
    rung: Rung = "none"
    deterministic: bool = False  # A/A was exact: a run can be repeated to the bit


@dataclass(frozen=True, slots=True)
class Arm:
    """One thing changed. `edits` is empty for control and A/A."""

    id: str  # "control", "aa", "lr-too-high", "lr-too-high/dose-2"; also its folder
    kind: ArmKind
    text: str  # what is changed, in words
    cause: str | None = None
    edits: tuple[Edit, ...] = ()
    means: tuple[str, str] = ("", "")  # if the symptom goes away; if it stays
    files: tuple[tuple[str, str], ...] = ()  # (path below the working folder, the file that replaces it)
    after: str = ""  # run only if this arm is refuted: the same knob, changed further


@dataclass(frozen=True, slots=True)
class Fork:
    """Where the arms start. `path` None: from scratch."""

    path: str | None
    step: float
    why: str
