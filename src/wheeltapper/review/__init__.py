"""A second opinion: the claims of a written diagnosis, each held against the record of the run.

`review_text(text, record)` reads a document; `review_claims(claims, record)` takes claims that something else has read.
Deterministic and offline: numbers, units, comparisons, settings, commands and causes are parsed by tables; what is not
understood is listed as unread, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from time import thread_time
from typing import Any

from wheeltapper.limits import Failure, guarded
from wheeltapper.review.answer_blocks import answer_command, answer_config
from wheeltapper.review.answer_causes import answer_blame
from wheeltapper.review.answer_courses import answer_change
from wheeltapper.review.answer_curves import answer_extreme, answer_prediction, answer_value
from wheeltapper.review.answer_settings import answer_edit, answer_setting
from wheeltapper.review.answer_states import answer_checkpoint, answer_speed, answer_state, answer_sum
from wheeltapper.review.document import Passage, passages
from wheeltapper.review.model import (
    Answer,
    AnyClaim,
    Blame,
    Change,
    Checkpoint,
    Claim,
    Command,
    Config,
    Edit,
    Extreme,
    Opinion,
    Prediction,
    Review,
    Setting,
    Speed,
    State,
    Sum,
    Unread,
    Value,
)
from wheeltapper.review.quantities import quantities
from wheeltapper.review.read_blocks import blocks_of, read_block, remarks_of
from wheeltapper.review.read_causes import read_causes
from wheeltapper.review.read_curves import GENERAL, read_curves
from wheeltapper.review.read_settings import read_settings
from wheeltapper.review.read_states import read_states
from wheeltapper.review.record import Record
from wheeltapper.review.subjects import Mention

__all__ = ["Record", "Review", "review_claims", "review_text"]

MOST_SECONDS = 30.0  # CPU time for a document; what is left then is unread
SECONDS = 1.0  # CPU time for one passage or claim: a hundred times what one takes
_NO_CLAIM = re.compile(
    r"^\W*(?:i (?:would|suggest|recommend|think)|please|thanks?|no action|set |use |try |check |monitor |start |consider|cut |add |if |when |note|stop |fix |verify|ensure|compare|test |reduce|increase|lower|raise|keep )",
    re.I,
)
_ANSWERS: dict[type[Claim], Callable[[Any, Record], Answer]] = {
    Value: answer_value,
    Extreme: answer_extreme,
    Change: answer_change,
    Prediction: answer_prediction,
    Setting: answer_setting,
    Edit: answer_edit,
    Blame: answer_blame,
    Checkpoint: answer_checkpoint,
    Config: answer_config,
    Command: answer_command,
    Sum: answer_sum,
    Speed: answer_speed,
    State: answer_state,
}


def review_text(text: str, record: Record, document: str = "") -> Review:
    """The claims of a document with their answers, in its order."""
    parts = passages(text)
    answers: list[Answer] = []
    unread: list[Unread] = []
    last: Mention | None = None
    began = thread_time()
    for passage in _introduced(parts):
        if passage.kind == "code" and passage.language not in ("", "text"):
            continue
        if thread_time() - began > MOST_SECONDS:
            unread.append(Unread(passage.line, passage.text.strip()))
            continue
        found = guarded(lambda p=passage, m=last: _read(p, record, m), seconds=SECONDS)  # type: ignore[misc]
        if isinstance(found, Failure):
            unread.append(Unread(passage.line, passage.text.strip()))
            continue
        claims, last = found
        answers += [_answered(claim, record) for claim in claims]
        if not claims:
            _leave(passage, answers, unread)
    for block in blocks_of(parts):
        if thread_time() - began > MOST_SECONDS:
            unread.append(Unread(block[0].line, block[0].text.strip()))
            continue
        read = guarded(lambda b=block: read_block(b, record), seconds=SECONDS)  # type: ignore[misc]
        claims = [] if isinstance(read, Failure) else read
        claims += [c for p in block for c in read_states(p.text, p.line, record.run) if isinstance(c, Checkpoint)]
        answers += [_answered(claim, record) for claim in claims]
        for section, remark in remarks_of(block):
            answers += [_answered(claim, record) for claim in _remark(section, remark, record)]
    answers.sort(key=lambda a: a.claim.line)
    return Review(document, record.run.name, tuple(_once(answers)), tuple(sorted(unread, key=lambda u: u.line)))


def _introduced(parts: Sequence[Passage]) -> Iterator[Passage]:
    """Lines of plain blocks with the line that introduces them: "Loss without curriculum (for comparison):"."""
    said = ""
    for passage in parts:
        if passage.kind != "code":
            said = ""
        elif passage.text.rstrip().endswith(":"):
            said = passage.text.strip()
        yield replace(passage, before=said) if said else passage


def review_claims(claims: Iterable[AnyClaim], record: Record, document: str = "") -> Review:
    """Claims that were read elsewhere, answered in their order."""
    return Review(document, record.run.name, tuple(_answered(claim, record) for claim in claims))


def _read(passage: Passage, record: Record, last: Mention | None) -> tuple[list[AnyClaim], Mention | None]:
    """Every kind of claim in one passage."""
    text, line = passage.text.strip(), passage.line
    context = f"{passage.heading} {passage.before}" if passage.kind == "code" else passage.heading
    plain = re.sub(r"\*\*|__", "", text)
    curves, last = read_curves(plain, line, record.run, context, last)
    if passage.kind == "heading":
        return read_causes(plain, line), last
    above = re.sub(r"\*\*|__", "", " ".join(passage.heading.split(" / ")[-2:]))
    claims: list[AnyClaim] = [*curves, *read_states(plain, line, record.run), *read_causes(plain, line, above)]
    claims += read_settings(plain, line, record, bool(GENERAL.search(context)))
    return claims, last


def _remark(section: str, passage: Passage, record: Record) -> list[AnyClaim]:
    """A remark in a block: causes, sums and positions it names; the key of its line stands before it."""
    claims = read_causes(passage.text, passage.line, section)
    claims += [c for c in read_states(passage.text, passage.line, record.run) if isinstance(c, Sum)]
    claims += [
        c
        for c in read_settings(passage.text, passage.line, record)
        if isinstance(c, Setting) and c.name in ("batch.effective", "workers-per-gpu")
    ]
    return claims


def _answered(claim: AnyClaim, record: Record) -> Answer:
    rule = _ANSWERS.get(type(claim))
    if rule is None:
        return Answer(claim, "no-claim", "")
    found = guarded(lambda: rule(claim, record), seconds=SECONDS)
    if isinstance(found, Failure):
        return Answer(claim, "undecided", f"it could not be worked out: {found.text}")
    return found


def _leave(passage: Passage, answers: list[Answer], unread: list[Unread]) -> None:
    """What holds no claim that was understood: plain advice is no claim, the rest is unread."""
    text = passage.text.strip()
    if passage.kind == "heading" or not re.search(r"\w{3}", text):
        return
    if _NO_CLAIM.match(text) and not quantities(text):
        answers.append(Answer(Opinion(text=text, line=passage.line), "no-claim", "advice"))
    else:
        unread.append(Unread(passage.line, text))


def _once(answers: Sequence[Answer]) -> list[Answer]:
    """Answers that say the same about the same words, once."""
    return list({(a.claim.line, a.claim.text, a.verdict, a.why): a for a in answers}.values())
