"""Claims about the run as a whole: finished or stopped, healthy or not, NaN, checkpoints, speed, and written-out sums."""

from __future__ import annotations

import re
from collections.abc import Iterator

from wheeltapper.review.model import AnyClaim, Checkpoint, Speed, State, Sum
from wheeltapper.review.quantities import NUMBER, Position, number_of, positions, quantities
from wheeltapper.review.subjects import Mention, mentions
from wheeltapper.run.model import Run

_NAN = re.compile(r"\bNaNs?\b|\bnot finite\b|\binf(?:inite)?\b", re.I)
_NO_NAN = re.compile(r"\bno (?:\w+ )?NaN|without NaN", re.I)
_FINISHED = re.compile(r"\b(?:finished|ran|trained|training ran|completed)\b", re.I)
_STOPPED = re.compile(r"\b(?:stop(?:s|ped)|record ends|cut off|interrupted|killed)\b", re.I)
_GOING_ON = re.compile(r"\bstop (?:the )?current training\b", re.I)
_HEALTHY = re.compile(
    r"\b(?:nothing is (?:wrong|broken)|(?:run|training)\b[^.;]{0,20}\b(?:looks |is )?(?:healthy|fine|sound|working correctly)|^\W*healthy\b|training works fine|well-structured|everything is fine)",
    re.I,
)
_DIVERGED = re.compile(r"\b(?:run|training|model) (?:has )?diverged\b", re.I)
_NO_WARNINGS = re.compile(r"\bno errors or warnings\b", re.I)
_PATH = re.compile(r"(?P<path>[\w./~:-]*?[\w-]+\.(?:pth?|ckpt|safetensors|h5|keras))\b|`(?P<folder>checkpoint-\d+)`")
_NAMED = re.compile(
    rf"(?:checkpoint|model) (?:of|at|from) (?:step|iteration|epoch) (?P<a>{NUMBER})|(?:step|iteration|iter|epoch)\s+(?P<b>{NUMBER}) checkpoint|\b(?P<c>{NUMBER})(?P<k>[kK])? checkpoint",
    re.I,
)
_RESUME = re.compile(r"\b(?:resume|resuming|continue|go on|restart|restore)\b", re.I)
_SPEED = (
    ("samples/s", re.compile(r"\b(?:images?|samples?|img)\s*(?:/|per )\s*s(?:ec(?:ond)?)?\b", re.I)),
    ("steps/s", re.compile(r"\b(?:batches|steps|iterations|it)\s*(?:/|per )\s*s(?:ec(?:ond)?)?\b", re.I)),
    ("s/epoch", re.compile(r"\bs(?:ec(?:onds?)?)? (?:per|an|/) ?epoch\b", re.I)),
)
_SUM = re.compile(rf"(?P<expression>(?:[\d.,()\s*/+×x·^-]|sqrt|ln|log){{3,60}}?)=\s*(?P<value>{NUMBER})")
_REMAINING = re.compile(
    rf"~?(?P<total>{NUMBER})\s*min\w* total[^.]{{0,20}}?(?P<left>{NUMBER}) (?:more )?min\w* remaining", re.I
)


def read_states(text: str, line: int, run: Run) -> list[AnyClaim]:
    """Everything in a sentence that is about the run as a whole."""
    if re.match(r"\W*(?:if|when)\b", text, re.I):
        return []
    claims = [*_nan(text, line, run), *_progress(text, line), *_words(text, line)]
    return [*claims, *_checkpoints(text, line), *_speeds(text, line), *_sums(text, line)]


def _spot(text: str) -> Position | None:
    found = positions(text)
    return found[0] if found else None


def _nan(text: str, line: int, run: Run) -> Iterator[AnyClaim]:
    if _NO_NAN.search(text):
        yield State(text=text, line=line, state="all-finite")
    elif (match := _NAN.search(text)) and not re.search(
        r"before (?:the )?$|\bor\b|\bcome from\b|\bfrom float",
        text[: match.start()] + text[match.end() : match.end() + 14],
        re.I,
    ):
        named = [m for m in mentions(text, run) if m.quantity == "loss"] or [
            Mention(0, 0, "loss", tuple(s.name for s in run.find("loss")))
        ]
        near = re.search(r"NaN[^.;]{0,30}", text, re.I)
        spot = _spot(near.group()) if near else None
        yield State(
            text=text, line=line, state="not-finite", subject=named[0].series,
            at=None if spot is None else spot.at, clock=None if spot is None else spot.clock,
        )  # fmt: skip


def _progress(text: str, line: int) -> Iterator[AnyClaim]:
    spots = positions(text)
    of = re.search(rf"(?P<at>{NUMBER})\s+of\s+(?P<total>{NUMBER})", text)
    if re.search(r"\brecord\b|\brun\b|\bit\b|\btraining\b", text, re.I) is None:
        return
    if _GOING_ON.search(text):
        yield State(text=text, line=line, state="going-on")
        return
    if _STOPPED.search(text) and (spots or of):
        at = spots[0].at if spots else number_of(of["at"]) if of else None
        yield State(text=text, line=line, state="stopped", at=at, clock=spots[0].clock if spots else "step")
    elif _FINISHED.search(text) and (spots or of) and not re.search(r"NaN|before", text):
        at = number_of(of["at"]) if of else spots[0].at
        yield State(text=text, line=line, state="finished", at=at, clock=spots[0].clock if spots else "step")


def _words(text: str, line: int) -> Iterator[AnyClaim]:
    if _HEALTHY.search(text) and not re.search(r"\bbefore that\b|scaler|\bwhen\b", text, re.I):
        yield State(text=text, line=line, state="healthy")
    if _DIVERGED.search(text):
        yield State(text=text, line=line, state="ill")
    if _NO_WARNINGS.search(text):
        yield State(text=text, line=line, state="no-warnings")


def _checkpoints(text: str, line: int) -> Iterator[AnyClaim]:
    resume, best = bool(_RESUME.search(text)), bool(re.search(r"\bbest\b|\boptimal\b", text, re.I))
    match = _PATH.search(text)
    named = _NAMED.search(text)
    step = None
    if named:
        raw = named["a"] or named["b"] or named["c"]
        step = number_of(raw) * (1000 if named["k"] else 1)
    if match:
        path = match["path"] or match["folder"]
        if step is None and (number := re.search(r"(\d+)(?:\.\w+)?$", path)):
            step = float(number.group(1))
        yield Checkpoint(text=text, line=line, path=path, step=step, resume=resume, best=best)
    elif named and (resume or re.search(r"\bkeep\b|\buse\b|\bbring\b|\bcopy\b", text, re.I)):
        yield Checkpoint(text=text, line=line, step=step, resume=resume, best=best)


def _speeds(text: str, line: int) -> Iterator[AnyClaim]:
    for unit, pattern in _SPEED:
        match = pattern.search(text)
        numbers = [
            q for q in quantities(text) if match is not None and q.end <= match.start() and match.start() - q.end < 4
        ]
        if match is not None and numbers:
            yield Speed(text=text, line=line, low=numbers[-1].low, high=numbers[-1].high, unit=unit)  # type: ignore[arg-type]


def _sums(text: str, line: int) -> Iterator[AnyClaim]:
    for match in _SUM.finditer(text):
        expression = match["expression"].strip().lstrip("~(:,. ")
        if re.search(r"\d\s*[*/+×x·^]\s*[\d(s]|(?:sqrt|ln|log)\s*\(", expression):
            found = quantities(match["value"])
            yield Sum(
                text=text,
                line=line,
                expression=expression,
                value=number_of(match["value"]),
                slack=found[0].slack if found else 0.0,
            )
    rest = _REMAINING.search(text)
    if rest is not None:
        yield Sum(
            text=text, line=line, expression=f"min({rest['total']}, {rest['left']})", value=number_of(rest["left"])
        )
