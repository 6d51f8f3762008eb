"""The first screen in words: the headline, three lines of why, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from wheeltapper.finding import Finding
from wheeltapper.judge.model import SOMETHING_ELSE, BestCheckpoint, Expected, Missing, RankedCause, Verdict
from wheeltapper.rules.signs import last_words
from wheeltapper.study import Study
from wheeltapper.study.learned import FEWEST

SHORT = 110  # characters of an error in the headline
HOW = {"is": "is", "is-p": "is", "suspected": "may be", "expected": "is expected"}


def headline(verdict: Verdict, findings: Sequence[Finding], study: Study, ranked: Sequence[RankedCause], p_ill: float) -> str:
    """One sentence, without its full stop: it stands alone."""
    if verdict == "ill":
        first = next((f for f in findings if f.severity == "ill"), None)
        return first.summary.rstrip(".") if first is not None else "What was seen adds up to trouble"
    learned = study.get("learned")
    died = unfinished(findings, study)
    if verdict == "sound":
        return f"{died}; no problem found until then: {learned.why}" if died else f"No problem found. {learned.why}"
    if died:
        return f"Cannot tell: {died[0].lower()}{died[1:]}; whether it was sound until then is open: {learned.why}"
    longest = _longest(study)
    if 0 < longest < FEWEST:
        return f"Cannot tell: no series holds more than {longest} value{'s' if longest > 1 else ''}, too few to judge"
    lost = next((note for note in study.run.notes if note.level == "lost"), None)
    if not longest and lost is not None:
        return f"Cannot tell: no loss and no metric could be read ({lost.file}: {lost.text})"
    suspect = next((c for c in ranked if c.id != SOMETHING_ELSE and c.summary), None)
    if suspect is not None and p_ill > 0.2:
        return f"Cannot tell: suspected is that {_lower(suspect.title)} ({suspect.summary.rstrip('.')})"
    return f"Cannot tell: {learned.why}"


def unfinished(findings: Sequence[Finding], study: Study) -> str:
    """That the program died, in words; empty where it did not, or was stopped by hand.

    Dying is no illness of what was learned, so it does not decide the verdict; but whoever asks about such a run wants to
    read it first.
    """
    crash = next((f for f in findings if _died(f)), None)
    if crash is None:
        return ""
    progress = study.get("progress")
    said = last_words(crash.summary, SHORT).rstrip(".")  # the whole of it stands among the signs
    if progress.state == "finished":
        return f"The training reached its end, and then {said}"
    where = f"at {progress.clock} {round(progress.at, 2):,.10g} " if progress.at is not None else ""
    where += f"of {progress.total:,.10g} " if where and progress.total is not None else ""
    return f"The run did not finish: {where}{said}"


def _died(finding: Finding) -> bool:
    return finding.id == "crashed" and not finding.numbers.get("by_hand")


def _longest(study: Study) -> int:
    return max((len(series) for series in study.run.series.values()), default=0)


def why(
    verdict: Verdict,
    findings: Sequence[Finding],
    ranked: Sequence[RankedCause],
    expected: Sequence[Expected],
) -> tuple[str, ...]:
    """At most three lines."""
    lines: list[str] = []
    if verdict == "ill":
        told = [f for f in findings if f.severity == "ill"]
        others = told[1:]
        lines.append(_cause_line(ranked, said=told[0].summary if told else ""))
        named = [c for c in ranked if c.id != SOMETHING_ELSE]
        if leading(ranked) is not None:
            lines += [f"or {_lower(c.title)} ({share(c.probability)})" for c in named[1:2] if c.probability >= 0.1]
        lines += [f.summary for f in others if f.summary not in lines[0]][:1]
    else:
        # A crash stands in the headline.
        lines += [f.summary for f in findings if f.severity == "watch" and not _died(f)][:2]
        lines += [e.why for e in expected][:2]
    return tuple(line.rstrip(".") for line in lines[:3])


def leading(ranked: Sequence[RankedCause]) -> RankedCause | None:
    """The cause to name and to treat: likelier than anything unknown, ahead of the next, and with something for it.

    A cause that leads only because it is common, or shares its place with another, would be told with more
    confidence than there is. Shares closer than 0.05 are a tie: they rest on rounded bits.
    """
    named = [c for c in ranked if c.id != SOMETHING_ELSE]
    if not named:
        return None
    top = named[0]
    other = next((c.probability for c in ranked if c.id == SOMETHING_ELSE), 0.0)
    ahead = len(named) < 2 or top.probability - named[1].probability >= 0.05
    supported = any(e.bits > 0 for e in top.evidence)
    return top if top.probability >= max(0.3, other) and ahead and supported else None


def _cause_line(ranked: Sequence[RankedCause], said: str) -> str:
    """The likeliest cause and the strongest thing that speaks for it, unless the headline said just that."""
    named = [c for c in ranked if c.id != SOMETHING_ELSE]
    top = leading(ranked)
    if top is not None:
        because = next((e.text for e in top.evidence if e.bits > 0 and e.text != said), "")
        return f"{top.title} ({share(top.probability)})" + (f": {because}" if because else "")
    if named:
        other = next((c.probability for c in ranked if c.id == SOMETHING_ELSE), 0.0)
        both = ", ".join(f"{_lower(c.title)} ({share(c.probability)})" for c in named[:2])
        return f"The cause is open: {both}, something else ({share(other)})"
    return "No known cause explains this; the record holds too little to say why"


def share(probability: float) -> str:
    """A probability in a sentence; never 0% or 100%, which it is not.

    >>> share(0.834), share(0.9999), share(0.0001)
    ('83%', '99%', '1%')
    """
    return f"{min(max(probability, 0.01), 0.99):.0%}"


def _lower(text: str) -> str:
    """The first letter small, unless it begins a name (GAN, OneCycleLR, Adam's).

    >>> _lower("The loss is maximised"), _lower("OneCycleLR sets it"), _lower("A setting"), _lower("Adam's epsilon")
    ('the loss is maximised', 'OneCycleLR sets it', 'a setting', "Adam's epsilon")
    """
    word = text.split(" ", 1)[0]
    named = any(c.isupper() for c in word[1:]) or word.endswith("'s")
    return text if named else text[:1].lower() + text[1:]


def todo(
    verdict: Verdict,
    ranked: Sequence[RankedCause],
    best: BestCheckpoint | None,
    missing: Sequence[Missing],
    study: Study,
    after_crash: Sequence[str] = (),
) -> tuple[str, ...]:
    """What to do next, most useful first. `after_crash`: how a run that died goes on."""
    out: list[str] = list(after_crash)
    longest = _longest(study)
    if verdict == "cannot-tell" and not longest:
        return ("Give the log of the run as well; `wheeltapper check` judges a config or a script without one.",)
    if verdict == "cannot-tell" and longest < FEWEST:
        return (*out, "Come back when more of the run is logged.")
    top = leading(ranked)
    if verdict == "ill":
        if best is not None and best.exists and best.path and not best.nothing:
            out.append(f"Keep {best.path} ({best.metric} {best.value:.4g}).")
        if top is not None:
            out += [r.text for r in top.remedies[:1]]
            if top.probability < 0.9 and top.trial and top.tried <= 0:
                out.append(f"To prove it: {top.trial.rstrip('.')}.")
    if verdict == "cannot-tell" or top is None:
        # No remedy while it is open whether the run is ill, or why: what would decide comes first.
        likeliest = next((c for c in ranked if c.id != SOMETHING_ELSE and c.trial), None)
        out += [f"To test the likeliest cause: {likeliest.trial.rstrip('.')}."] if likeliest is not None else []
    # What would decide between causes is worth asking for only while there is something to decide.
    if verdict == "cannot-tell" or (verdict == "ill" and (top is None or top.probability < 0.9)) or not out:
        # Below one bit it decides nothing between causes.
        out += [f"Log {m.what} ({m.why})." for m in missing[:2] if m.bits >= 1 and not m.what.startswith("a trial")]
    return tuple(dict.fromkeys(out))[:4]
