"""Claims about curves in a sentence: values at places, from one value to another, and which way it goes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import structs

from wheeltapper.review.model import AnyClaim, Change, Direction, Extreme, Moment, Prediction, Value
from wheeltapper.review.quantities import Position, Quantity, positions, quantities
from wheeltapper.review.subjects import Mention, mentions, shares, switched
from wheeltapper.run.model import Run

_MOMENTS: tuple[tuple[Moment, re.Pattern[str]], ...] = (
    ("never-above", re.compile(r"never\s+(?:exceeds?|gets? (?:to|above|over)|reach(?:es|ed)?|went above|passes)|at most|not above|only reach(?:es|ed)?", re.I)),
    ("never-below", re.compile(r"never\s+(?:falls?|gets?|drops?|went) below|at least|not below", re.I)),
    ("lowest", re.compile(r"minimum|lowest|min\b|bottoms? out|\blow(?:est)? (?:at|of)", re.I)),
    ("highest", re.compile(r"peak(?:s|ed)?\b|maximum|highest|max\b|spik(?:es|ed)|tops? out|jumps? to", re.I)),
    ("best", re.compile(r"\bbest\b", re.I)),
    ("last", re.compile(r"\bends?\b|ended|final(?:ly)?|at the end|by the end|the last|finish(?:es|ed) (?:at|with)|current(?:ly)?|afterwards", re.I)),
    ("first", re.compile(r"\bstart(?:s|ed)? (?:at|with|from)|initial|at the start|at first|the first|in the beginning|beg[ai]ns? (?:at|with)", re.I)),
    ("reached", re.compile(r"\breach(?:es|ed)?\b|gets? to|climbs? to|rises? to|up to", re.I)),
    ("last", re.compile(r"(?:falls?|drops?|decays?|down|collapses?|goes) to", re.I)),
    ("level", re.compile(r"stays? (?:at|near|around)|stuck|flat at|sits? at", re.I)),
)  # fmt: skip
_EXTREME: tuple[tuple[Literal["best", "highest", "lowest"], re.Pattern[str]], ...] = (
    ("best", re.compile(r"\bbest\b", re.I)),
    ("lowest", re.compile(r"\b(?:lowest|minimum|minimal|bottoms? out|bottoms)\b", re.I)),
    ("highest", re.compile(r"\b(?:highest|maximum|peaks?|peaked|tops? out)\b", re.I)),
)
_UP = r"ris(?:es|ing|en|e)|rose|climb(?:s|ed|ing)?|grow(?:s|n|ing)?|grew|increas(?:es|ed|ing|e)|explod(?:es|ed)|doubl(?:es|ing)|blows? up|goes up|turns? up(?:wards?)?|shoots? up"
_DOWN = r"fall(?:s|ing|en)?|fell|drop(?:s|ped|ping)?|shrink(?:s|ing)?|shrank|decay(?:s|ed|ing)?|decreas(?:es|ed|ing|e)|collaps(?:es|ed)|declin(?:es|ed|ing|e)|anneal(?:s|ed)|goes down"
_DIRECTIONS: tuple[tuple[Direction, re.Pattern[str]], ...] = (
    ("worse", re.compile(r"\b(?:(?:gets?|got|getting|becomes?) (?:\w+ )?worse|worsens?|worsening|degrad(?:es|ed|ing)|deteriorat\w+)\b", re.I)),
    ("better", re.compile(r"\b(?:improv(?:es|ed|ing)(?! by)|gets? better)\b", re.I)),
    ("flat", re.compile(r"\b(?:(?:is|stays?|remains?|stayed|keeps?)\s+(?:\w+\s+)?(?:flat|constant|the same)|flat at)\b", re.I)),
    ("up", re.compile(rf"\b(?:{_UP})\b", re.I)),
    ("down", re.compile(rf"\b(?:{_DOWN})\b", re.I)),
)  # fmt: skip
_ONSET = re.compile(
    r"\b(?:start(?:s|ed|ing)?|beg[iau]n(?:s|ning)?|after|since|from|past|bottoms? out|turns?|onwards?)\b", re.I
)
_BEGINS = re.compile(r"\b(?:start(?:s|ed)?|beg[iau]n(?:s|ning)?|bottoms? out|turns?)\b", re.I)
# "improves up to step 600 and falls then": it is best there.
_UNTIL = re.compile(
    r"\bimprov\w+\b[^.;]{0,20}\b(?:until|up to|till)\b(?=[^.;]{0,40}\b(?:then|after|falls?|worse|degrad\w+|declin\w+))",
    re.I,
)
_TURN = re.compile(r"\bbottoms? out\b", re.I)
_PAIR = re.compile(
    r"^\W*(?:(?:at )?(?:the )?(?:start|beginning|first)\W*)?(?:down |up |back |and (?:then )?(?:falls|rises|drops|goes|ends) )?(?:to|→|->|–>|=>|⟶|by)\s*(?:about|around|only|just|below|above|~|≈)?\s*$",
    re.I,
)
_FUTURE = re.compile(
    r"\b(?:(?<!as )expect(?:ed|s)?|should|will|would(?! have)|target|milestones?|goal|anticipat\w+|checkpoints to monitor)\b",
    re.I,
)
_OTHER_RUN = re.compile(
    r"\b(?:for comparison|without curriculum|previous run|other run|baseline run|earlier run|last time|documentation)\b",
    re.I,
)
# Headings under which a text tells what is healthy or alarming in general, not what this run did.
GENERAL = re.compile(
    r"warning signs|healthy\b|health indicators|success metrics|problem signs|troubleshoot|\bif\b|normal \w+ (?:training )?pattern|guidelines|understanding|lessons",
    re.I,
)
_CONDITION = re.compile(r"^\W*(?:if|when|unless|should you)\b", re.I)
# What may stand between a curve and its value: nothing much, or a word that says that it is the value.
_TIED = re.compile(
    r"^\W{0,4}$|^[^.;]{0,40}\b(?:is|was|are|were|of|bottoms at|sits at|stands at|lies at|measures|equals|about|only)\W*$|^\W*[:=]\W*$",
    re.I,
)
_OTHER_SPLIT = re.compile(r"\s*(?:in|on|for)\s+(?:the )?(?:train|valid|held|test)", re.I)
_CONTRAST = re.compile(r"\b(?:while|but|whereas|against)\b.*", re.I)
_REASON = re.compile(r"\b(?:because|since|due to|which is why|so that|close to chance)\b", re.I)
_ADVISED = re.compile(
    r"\b(?:lower|reduce|slower|longer|gentler|increase|extend|higher|raise|change|switch|shorter)\b[^:]{0,30}:?\s*$",
    re.I,
)
_DIFFERENCE = re.compile(r"\b(?:decline|loss|drop|fall|decrease|gain|rise|increase|improvement) of\s*$", re.I)
# Words that make a number something else than a value of the curve named before it.
_NOT_A_VALUE = re.compile(
    r"(?:decay|batch|ln|log|classes?|horizon|\bof\b (?:its|the) (?:run|time)|every|T_max|t_max|milestones?|gamma|momentum|line|error|multiplied|divided|scaled|factor|halved|doubled|cut|reduced|stepped|switched|resumed|restarted)\W{0,4}(?:is|was|of|at|by)?\s*$",
    re.I,
)
_NOT_AFTER = re.compile(
    r"^\s*-?(?:warm-?up|rows|points|worse|better|lower|higher|scatters|×|x\b|times|classes|samples|images|workers|values?|of \d|per\b|gpus?|epochs?|steps?|iterations?|evaluations|batches|layers|more)",
    re.I,
)
MOST_NUMBERS = 6  # in a sentence: with more it is not plain which belongs to what
_SETTING_OF = {"lr": "optimizer.lr", "loss_scale": "amp.init_scale"}


def read_curves(
    text: str, line: int, run: Run, context: str = "", last: Mention | None = None
) -> tuple[list[AnyClaim], Mention | None]:
    """The claims of a sentence about curves, and the curve it was last about (for "it" in the next one)."""
    subjects = mentions(text, run)
    if not subjects and last is not None and re.match(r"\W*(?:it|this|that|they)\b", text, re.I):
        subjects = [Mention(0, 0, last.quantity, last.series, last.exact, last.named)]
    if not subjects or _CONDITION.match(text):
        return [], last
    if _OTHER_RUN.search(f"{context} {text}") or GENERAL.search(context):
        return [], subjects[-1]
    numbers, spots = quantities(text), positions(text)
    future = bool(_FUTURE.search(f"{context} {text}"))
    claims: list[AnyClaim] = []
    used: set[int] = set()
    passed: set[int] = set()  # numbers that are no values: neither are those that go on a list of them
    several = len(numbers) > 1
    for index, number in enumerate(numbers):
        subject = _subject_of(text, number, subjects, run)
        if index in used or subject is None or not subject.series:
            continue
        listed = index - 1 in passed and re.fullmatch(r"\W*(?:and|or)?\W*", text[numbers[index - 1].end : number.start])
        if listed or _no_value(text, number, subject):
            passed.add(index)
            continue
        pair = _paired(text, numbers, index, spots)
        if pair is not None and not future:
            used.add(pair)
            if _ADVISED.search(text[: number.start]):
                continue  # a change of a setting that is proposed
            claims.append(_from_to(text, line, subject, number, numbers[pair], spots, subjects))
            continue
        value = _value(text, line, subject, numbers, index, spots, subjects, future)
        claims.append(structs.replace(value, several=True) if several and isinstance(value, Value) else value)
    if not future:
        claims += _extremes(text, line, subjects, numbers, spots)
        claims += _moves(text, line, subjects, spots, claims)
    return claims, subjects[-1]


def _subject_of(text: str, number: Quantity, subjects: Sequence[Mention], run: Run) -> Mention | None:
    """The last curve named before a number, else the first after it."""
    before = [m for m in subjects if m.end <= number.start]
    if not before:
        return subjects[0] if subjects else None
    contrast = _CONTRAST.search(text[before[-1].end : number.start])
    return switched(before[-1], contrast.group(), run) if contrast else before[-1]


def _no_value(text: str, number: Quantity, subject: Mention) -> bool:
    between = text[subject.end : number.start] if subject.end <= number.start else text[: number.start]
    if (
        _REASON.search(between)
        or _NOT_A_VALUE.search(between)
        or _NOT_AFTER.match(text[number.end :])
        or number.unit in ("×", "x")
    ):
        return True
    if re.search(r"\b(?:not|instead of|rather than)\W*$", text[: number.start], re.I):
        return True
    if number.percent and subject.quantity not in shares():
        return True  # a share of something, not a value of the curve
    if re.search(r"[(]\s*[-+−]?$", text[: number.start]) and number.percent:
        return True  # "(−4.4 %)": a comment on the number before
    if subject.end > number.start and not re.match(
        r"(?:(?! of )[^,.;]){0,16}$", text[number.end : subject.start] or ""
    ):
        return True
    for spot in positions(between):
        between = between[: spot.start] + " " * (spot.end - spot.start) + between[spot.end :]
    return bool(re.search(r"[`\w]+[\s`]*[:=]\s*[`'\"]?$", between)) and len(between.split()) > 2


def _paired(text: str, numbers: Sequence[Quantity], index: int, spots: Sequence[Position]) -> int | None:
    """The number that this one goes to: "from A at step 20 to B"."""
    if index + 1 >= len(numbers):
        return None
    a, b = numbers[index], numbers[index + 1]
    between = text[a.end : b.start]
    for spot in spots:
        if a.end <= spot.start and spot.end <= b.start:
            between = between.replace(text[spot.start : spot.end], "")
    between = re.sub(r"\b(?:at|@|in|by)\s*(?=\W|$)|its?\b|[()]", " ", between)
    return index + 1 if _PAIR.match(re.sub(r"\s+", " ", between).strip() + " ") else None


def _spot_of(
    text: str, number: Quantity, numbers: Sequence[Quantity], spots: Sequence[Position], subjects: Sequence[Mention]
) -> Position | None:
    """The position that belongs to a number: right after it, else right before, else the only one of the sentence."""
    later = [n.start for n in numbers if n.start > number.end]
    limit = min(later, default=len(text))
    after = [s for s in spots if number.end <= s.start < limit and len(text[number.end : s.start]) < 30]
    if after and not re.search(r"\b(?:after|because|since|of)\b", text[number.end : after[0].start]):
        return after[0]
    earlier = [n.end for n in numbers if n.end < number.start]
    floor = max(earlier, default=0)
    before = [s for s in spots if floor <= s.start and s.end <= number.start]
    before = [
        s for s in before if not (earlier and s.start - floor < number.start - s.end)
    ]  # it belongs to the number before
    if before and not re.search(r"\b(?:after|over|for|in)\s*(?:the first\s*)?$", text[: before[-1].start], re.I):
        return before[-1]
    tail = [s for s in spots if s.start > number.end]
    return tail[-1] if len(spots) == 1 and tail and len(subjects) > 1 and "@" in text else None


def _one(text: str, line: int, subject: Mention, number: Quantity, spot: Position | None, moment: Moment) -> Value:
    wide = 0.08 * abs(number.low) if number.about else 0.0
    return Value(
        text=text, line=line, subject=subject.series, low=number.low, high=number.high, moment=moment,
        at=None if spot is None else spot.at, clock=None if spot is None else spot.clock, percent=number.percent,
        slack=max(number.slack, wide), setting=_SETTING_OF.get(subject.quantity),
    )  # fmt: skip


def _moment(text: str, number: Quantity, numbers: Sequence[Quantity], subject: Mention) -> Moment | None:
    """Which moment is meant: by the words just before the number, then by those just after."""
    earlier = max((n.end for n in numbers if n.end <= number.start), default=0)
    lead = text[max(earlier, subject.end if subject.end <= number.start else 0, number.start - 60) : number.start]
    if earlier <= subject.start <= number.start:
        lead = text[max(earlier, subject.start - 16) : number.start]
    later = min((n.start for n in numbers if n.start >= number.end), default=len(text))
    tail = re.split(r"[;]|, (?!its|the)|\bbut\b|\bwhile\b|\band\b", text[number.end : later])[0]
    for words in (lead, tail):
        found = next((moment for moment, pattern in _MOMENTS if pattern.search(words)), None)
        if found is not None:
            return found
    return None


def _value(
    text: str,
    line: int,
    subject: Mention,
    numbers: Sequence[Quantity],
    index: int,
    spots: Sequence[Position],
    subjects: Sequence[Mention],
    future: bool,
) -> AnyClaim:
    number = numbers[index]
    spot = _spot_of(text, number, numbers, spots, subjects)
    if future:
        return Prediction(
            text=text, line=line, subject=subject.series, low=number.low, high=number.high, percent=number.percent,
            at=None if spot is None else spot.at, clock=None if spot is None else spot.clock,
        )  # fmt: skip
    if _DIFFERENCE.search(text[: number.start]):
        return Change(text=text, line=line, subject=subject.series, difference=number.low)
    moment = _moment(text, number, numbers, subject)
    if moment is None:
        moment = "at" if spot is not None else "somewhere"
    second = any(n.end <= number.start for n in numbers)
    if spot is not None and (moment == "first" or (moment == "last" and second and spot.end <= number.start)):
        spot = None  # the place of another number of the sentence
    value = _one(text, line, subject, number, spot, moment)
    earlier = max((n.end for n in numbers if n.end <= number.start), default=0)
    between = text[max(subject.end, earlier) : number.start] if subject.end <= number.start else ""
    tied = (moment != "somewhere" or bool(_TIED.match(between))) and not _OTHER_SPLIT.match(text[number.end :])
    return value if tied and len(numbers) <= MOST_NUMBERS else structs.replace(value, loose=True)


def _from_to(
    text: str,
    line: int,
    subject: Mention,
    a: Quantity,
    b: Quantity,
    spots: Sequence[Position],
    subjects: Sequence[Mention],
) -> Change:
    both = (a, b)
    first, second = _spot_of(text, a, both, spots, subjects), _spot_of(text, b, both, spots, subjects)
    if second is not None and first is not None and second.start == first.start:
        second = None
    begins = "first" if re.search(r"at the (?:start|beginning)", text[a.end : b.start], re.I) else "somewhere"
    tail = text[b.end : b.end + 24]
    ends: Moment = (
        "best"
        if re.search(r"best", tail, re.I)
        else "last"
        if re.search(r"(?:at|by) (?:the |its )?end|over the run", tail, re.I)
        else "somewhere"
    )
    start = _one(text, line, subject, a, first, "at" if first else begins)  # type: ignore[arg-type]
    return Change(
        text=text, line=line, subject=subject.series, start=start, end=_one(text, line, subject, b, second, "at" if second and ends == "somewhere" else ends),
    )  # fmt: skip


def _extremes(
    text: str, line: int, subjects: Sequence[Mention], numbers: Sequence[Quantity], spots: Sequence[Position]
) -> list[AnyClaim]:
    """ "The best PSNR is at step 1440", "val loss is lowest at epoch 5": a position without a value."""
    out: list[AnyClaim] = []
    for subject in (s for s in subjects if s.series):
        after = next((s for s in spots if s.start >= subject.end), None)
        if after is None or any(subject.end <= n.start < after.start for n in numbers):
            continue
        words = f"{text[max(0, subject.start - 12) : subject.start]} {text[subject.end : after.start]}"
        found = next((moment for moment, pattern in _EXTREME if pattern.search(words)), None)
        if (
            found is not None
            and len(words) < 60
            and re.search(r"\b(?:at|around|near|in|by)\s*(?:about|around)?\s*$", text[: after.start], re.I)
        ):
            out.append(
                Extreme(text=text, line=line, subject=subject.series, moment=found, at=after.at, clock=after.clock)
            )
    return out


def _moves(
    text: str, line: int, subjects: Sequence[Mention], spots: Sequence[Position], claims: Sequence[AnyClaim]
) -> list[AnyClaim]:
    """Which way a curve goes, where the sentence says so: the verb must follow the curve closely."""
    out: list[AnyClaim] = []
    for at, subject in enumerate(subjects):
        limit = subjects[at + 1].start if at + 1 < len(subjects) else len(text)
        words = re.split(r"\b(?:because|so that|which|while|but)\b|[;]", text[subject.end : limit])[0]
        if not subject.series or re.search(r"\b(?:not|never|no longer|only|n't)\b", words[:40]):
            continue
        peak = _UNTIL.search(words)
        spot = next((s for s in spots if peak is not None and s.start >= subject.end + peak.start()), None)
        if spot is not None:
            out.append(
                Extreme(text=text, line=line, subject=subject.series, moment="best", at=spot.at, clock=spot.clock)
            )
            continue
        turn = _TURN.search(words)
        found = next(((d, m) for d, p in _DIRECTIONS if (m := p.search(words)) and m.start() < 45), None)
        if found is None and turn is None:
            continue
        direction: Direction = "worse" if turn else found[0] if found else "flat"
        change = _change(text, line, subject, direction, subject.end, words, spots)
        if change is not None and not (
            change.since is None and any(isinstance(c, Change) and c.subject == subject.series for c in claims)
        ):
            out.append(change)
    return out


def _change(
    text: str, line: int, subject: Mention, direction: Direction, offset: int, words: str, spots: Sequence[Position]
) -> Change | None:
    inside = [s for s in spots if offset <= s.start <= offset + len(words)]
    ahead = [s for s in spots if s.end <= subject.start and re.match(r"\s*\+|\s*onwards?", text[s.end :])]
    if ahead and not inside:
        return Change(
            text=text, line=line, subject=subject.series, direction=direction, since=ahead[-1].at, clock=ahead[-1].clock
        )
    onset = _ONSET.search(words)
    since = inside[0] if inside and onset and onset.start() < inside[0].start - offset else None
    if inside and since is None and not re.search(r"\bby\b", words):
        return None  # a value at a place, not a course
    return Change(
        text=text, line=line, subject=subject.series, direction=direction,
        since=None if since is None else since.at, clock=None if since is None else since.clock,
        begins=since is not None and bool(_BEGINS.search(words)),
    )  # fmt: skip
