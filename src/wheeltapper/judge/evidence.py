"""Everything a study shows that the judge weighs: observations with their state, signs, and what code and settings prove."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from wheeltapper.audit import BREAKS
from wheeltapper.errors import ContractError
from wheeltapper.finding import Answer, Clear, Edit, Finding, Place, Remedy, Unknown
from wheeltapper.judge.echo import without_echoes
from wheeltapper.judge.tables import TOGETHER
from wheeltapper.observations import Observation, Reading, observations
from wheeltapper.program.checks import registry
from wheeltapper.rules.causes import causes
from wheeltapper.rules.signs import Sign, ask, signs
from wheeltapper.settings.knobs import KNOBS, Knobs
from wheeltapper.settings.ranges import Beyond, place_knob
from wheeltapper.study import Absent, Study

Grade = Literal["proof", "hint", "range", "edge", "note"]
FAILED = "this {kind} failed, which is a bug in Wheeltapper"
FAILS: tuple[type[Exception], ...] = (Exception,)  # what one observation or sign must not take the others with it by
SEVERITY = {"note": 1, "watch": 2, "ill": 3}


@dataclass(frozen=True, slots=True)
class Seen:
    """One thing that was looked at: which state it is in, and the sentence that says so."""

    id: str
    state: int
    inside: bool  # within its healthy band
    text: str
    about: str
    value: float | None = None
    series: str | None = None
    clock: str | None = None
    onset: float | None = None
    places: tuple[Place, ...] = ()
    needed: bool = False  # below its lowest edge nothing was learned, and no run is sound


@dataclass(frozen=True, slots=True)
class Pointer:
    """A finding of code or settings that speaks for one cause."""

    cause: str
    grade: Grade
    finding: Finding
    remedy: Remedy | None = None  # where it is more exact than what the cause offers


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of one run, before anything is weighed."""

    seen: tuple[Seen, ...]
    pointers: tuple[Pointer, ...]
    findings: tuple[Finding, ...]
    clears: tuple[tuple[str, Clear], ...]
    unknowns: tuple[tuple[str, Unknown], ...]
    looked: bool  # whether settings or code were there to be checked


def gather(study: Study, audit: Sequence[Finding] = (), *, live: bool = False) -> Evidence:
    """Ask every observation and every sign; one that fails does not take the others with it."""
    seen: list[Seen] = []
    unknowns: list[tuple[str, Unknown]] = []
    for observation in observations():
        answer = _read(observation, study)
        if isinstance(answer, Unknown):
            unknowns.append((observation.id, answer))
        elif not (live and not observation.live):
            seen.append(_as_seen(observation, answer))
    findings: list[Finding] = []
    clears: list[tuple[str, Clear]] = []
    for sign in signs():
        answers = [Unknown("asked when the run is over")] if live and not sign.live else _ask(sign, study)
        found = [a for a in answers if isinstance(a, Finding)]
        clear = [a for a in answers if isinstance(a, Clear)]
        findings += found
        clears += [(sign.id, a) for a in clear]
        unknowns += [(sign.id, a) for a in answers if isinstance(a, Unknown)]
        if found or clear:
            seen.append(_of_sign(sign, found))
    seen.append(_together(without_echoes(findings)))
    run = study.run
    resumed = any(segment.kind == "resume" for segment in run.segments)
    return Evidence(
        tuple(seen), (*pointers_of(audit, resumed=resumed), *_out_of_range(study), *_contradictions(study)), tuple(findings), tuple(clears), tuple(unknowns),
        bool(run.configs or run.scripts),
    )  # fmt: skip


def _read(observation: Observation, study: Study) -> Reading | Unknown:
    try:
        answer: Reading | Unknown = study.call(observation.observe)
    except Absent as absent:
        return Unknown(absent.why, absent.needs)
    except ContractError:
        raise
    except FAILS as error:
        text = FAILED.format(kind="observation")
        return Unknown(f"{text} ({type(error).__name__}: {error})", ("a report of this to the project",))
    if isinstance(answer, Reading) and not -1e300 < answer.value < 1e300:
        return Unknown("the number is not finite")
    return answer


def _ask(sign: Sign, study: Study) -> list[Answer]:
    try:
        return ask(sign, study)
    except ContractError:
        raise
    except FAILS as error:
        text = FAILED.format(kind="sign")
        return [Unknown(f"{text} ({type(error).__name__}: {error})", ("a report of this to the project",))]


def _as_seen(observation: Observation, reading: Reading) -> Seen:
    state = observation.state(reading.value)
    return Seen(
        observation.id, state, observation.inside(state), reading.text, observation.about, reading.value,
        reading.series, reading.clock, reading.onset, reading.places, observation.needed,
    )  # fmt: skip


def _of_sign(sign: Sign, found: Sequence[Finding]) -> Seen:
    if not found:
        return Seen(sign.id, 0, True, "", "learning")
    worst = max(found, key=lambda f: SEVERITY[f.severity])
    return Seen(
        sign.id, SEVERITY[worst.severity], False, worst.summary, "learning", None,
        worst.series, worst.clock, worst.onset, worst.places,
    )  # fmt: skip


def _together(findings: Sequence[Finding]) -> Seen:
    """Signs that are ill, taken together: none, one, several, or one that is certain."""
    ill = list({f.id: f for f in findings if f.severity == "ill"}.values())
    certain = [f for f in ill if f.grade == "is"]
    told = (certain or ill)[:1]
    text = told[0].summary if told else "no sign of trouble is seen"
    state = 3 if certain else min(len(ill), 2)
    first = told[0] if told else None
    return Seen(
        TOGETHER, state, not ill, text, "learning", None,
        first.series if first else None, first.clock if first else None, first.onset if first else None,
    )  # fmt: skip


BEYOND = 0.35  # steps beyond its usual range from which a setting points to a cause


def _out_of_range(study: Study) -> Iterator[Pointer]:
    """Settings that lie beyond their working range, each for its cause."""
    knobs = study.maybe("knobs")
    for beyond in study.maybe("out_of_range") or ():
        if beyond.steps >= BEYOND:
            place = knobs.place(place_knob(beyond.range.knob))
            told = Finding(
                "beyond-range", beyond.sentence(), "watch", "suspected", numbers={"steps": beyond.steps},
                places=(place,) if place.file else (),
            )  # fmt: skip
            yield Pointer(beyond.range.cause, "range" if beyond.steps >= 1 else "edge", told, _back_into_range(beyond, knobs))


def _back_into_range(beyond: Beyond, knobs: Knobs) -> Remedy | None:
    """The setting itself, at the end of its usual range; a rate is chosen by its cause."""
    knob, usual = beyond.range.knob, beyond.range.usual
    if knob.startswith("optimizer.lr"):
        return None
    predicts = "the run does better from its first evaluations on"
    if knob not in KNOBS or not isinstance(knobs.value(knob), int | float):
        return Remedy(f"Bring {knob} {'below' if beyond.high else 'above'} {usual:g}; it is {beyond.value:g}.", (), "advice", predicts)
    whole = KNOBS[knob].kind == "count"
    edit = Edit(knob, knobs.value(knob), round(usual) if whole else usual, beyond.range.why)
    return Remedy(f"Set {knob} to {usual:g} or {'less' if beyond.high else 'more'}.", (edit,), "try", predicts)


def _contradictions(study: Study) -> Iterator[Pointer]:
    """Settings that contradict each other or what they are about, each for its cause."""
    for told in study.maybe("contradictions") or ():
        yield Pointer(told.cause, told.grade, Finding("contradiction", told.text, "watch", "suspected", places=told.places))


def pointers_of(audit: Iterable[Finding], *, resumed: bool = False) -> list[Pointer]:
    """Which cause each finding of code or settings speaks for, and how strongly."""
    out: dict[tuple[str, str], Pointer] = {}
    for finding in audit:
        grade = grade_of(finding, resumed=resumed)
        for cause_id in _causes_of(finding) if grade is not None else ():
            out.setdefault((cause_id, grade or ""), Pointer(cause_id, grade, finding))  # type: ignore[arg-type]
    return list(out.values())


@cache
def _proved_by() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for cause in causes():
        for id_ in cause.proved_by:
            found[id_] = (*found.get(id_, ()), cause.id)
    return found


def _causes_of(finding: Finding) -> tuple[str, ...]:
    """The causes that a finding speaks for; a check that no cause knows is a cause of its own."""
    named = _proved_by().get(finding.id, ())
    check = registry().get(finding.id)
    if check is not None and (check.cause is not None or not named):
        named = (*named, check.cause_of(finding) or check.id)
    return tuple(dict.fromkeys(named))


def grade_of(finding: Finding, *, resumed: bool = False) -> Grade | None:
    """A proof alone makes the run another one than was asked for; a hint would, were it proved; a note does not."""
    if finding.grade == "expected":
        return None
    check = registry().get(finding.id)
    if check is None and finding.id in BREAKS:  # the file is not as its framework wants it; what that did is open
        return "note"
    if check.decides_for(finding, resumed=resumed) if check is not None else finding.severity == "ill":
        return "proof" if finding.grade == "is" else "hint"
    return "note" if finding.grade == "is" and check is not None else None
