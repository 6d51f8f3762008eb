"""The first screen in words: the headline, three lines of why, what to do."""

from __future__ import annotations

from collections.abc import Sequence

from wheeltapper.diagnosis.model import SOMETHING_ELSE, BestCheckpoint, Expected, Missing, RankedCause, Verdict
from wheeltapper.finding import Finding, Unknown
from wheeltapper.signals import Signals

HOW = {"is": "is", "is-p": "is", "suspected": "may be", "expected": "is expected"}


def headline(verdict: Verdict, findings: Sequence[Finding], signals: Signals) -> str:
    """One sentence."""
    if verdict == "ill":
        first = next(f for f in findings if f.severity == "ill" and f.grade != "suspected")
        return first.summary
    learned = signals.get("learned")
    if verdict == "sound":
        return f"Nothing is wrong that this record can show: {learned.why}."
    suspected = next((f for f in findings if f.severity == "ill"), None)
    if suspected is not None:
        return f"Cannot tell: {suspected.summary}"
    return f"Cannot tell: {learned.why}."


def why(
    verdict: Verdict,
    findings: Sequence[Finding],
    ranked: Sequence[RankedCause],
    expected: Sequence[Expected],
    unknowns: Sequence[tuple[str, Unknown]],
) -> tuple[str, ...]:
    """At most three lines."""
    lines: list[str] = []
    if verdict == "ill":
        named = [c for c in ranked if c.id != SOMETHING_ELSE]
        other = next((c.probability for c in ranked if c.id == SOMETHING_ELSE), 0.0)
        if named and named[0].probability >= max(0.3, other):
            top = named[0]
            lines.append(f"{top.title} ({top.probability:.0%}): {top.summary}")
            lines += [
                f"or {c.title[0].lower()}{c.title[1:]} ({c.probability:.0%})"
                for c in named[1:2]
                if c.probability >= 0.1
            ]
        elif named:
            both = ", ".join(f"{c.title[0].lower()}{c.title[1:]} ({c.probability:.0%})" for c in named[:2])
            lines.append(f"The cause is open: {both}; something else {other:.0%}.")
        else:
            lines.append("No known cause explains this; the record holds too little to say why.")
        second = [f for f in findings if f.severity == "ill"][1:2]
        lines += [f.summary for f in second]
    else:
        lines += [f.summary for f in findings if f.severity == "watch"][:2]
        lines += [f"{e.title}: {e.why}" for e in expected][:2]
        if verdict == "cannot-tell" and not lines:
            lines += [u.why for _, u in unknowns][:2]
    return tuple(lines[:3])


def todo(
    verdict: Verdict, ranked: Sequence[RankedCause], best: BestCheckpoint | None, missing: Sequence[Missing]
) -> tuple[str, ...]:
    """What to do next, most useful first."""
    out: list[str] = []
    top = next((c for c in ranked if c.id != SOMETHING_ELSE), None)
    if verdict == "ill":
        if best is not None and best.exists and best.path:
            out.append(f"Keep {best.path} ({best.metric} {best.value:.4g}).")
        elif best is not None and best.step is not None:
            out.append(
                f"The best moment was at {best.step:g} ({best.metric} {best.value:.4g}); {best.why.split('; ')[-1]}."
            )
        if top is not None and top.probability >= 0.3:
            out += [r.text for r in top.remedies[:1]]
            if top.probability < 0.9 and top.trial:
                out.append(f"To prove it: {top.trial}")
    if verdict != "sound" or not out:
        out += [f"Log {m.what}: {m.why}." if not m.what.startswith("a trial") else "" for m in missing[:2]]
    return tuple(line for line in dict.fromkeys(out) if line)[:4]
