"""From evidence to probabilities. Pure; tested by tables.

Weights of evidence as Turing and Good used them: a cause starts from its prior in bits and each item adds
its own. Causes that explain the same signs share the probability with "something else", which holds bits of its own
(causes/_weights.py), so a field of weak causes gives a weak answer. An ill sign that a cause cannot explain speaks against
it: something else would have to be wrong as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from wheeltapper.causes._weights import Weights, weights
from wheeltapper.finding import Evidence, Finding, Grade

IS, LIKELY = 0.95, 0.60  # from here a claim may say "is", "is probably"; below, "suspected" (KNOWLEDGE §0)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A cause with what was weighed, before it is compared with the others."""

    id: str
    prior: float
    explains: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    decided: bool = False  # by arithmetic or code: its grade may be "is"


def score(candidate: Candidate, ill_signs: Sequence[str], by: Weights) -> float:
    """Bits of a candidate against "something else"."""
    left = [sign for sign in dict.fromkeys(ill_signs) if sign not in candidate.explains]
    return candidate.prior + sum(e.bits for e in candidate.evidence) + by.unexplained * len(left)


def probabilities(
    candidates: Sequence[Candidate], ill_signs: Sequence[str], by: Weights | None = None
) -> tuple[dict[str, float], float]:
    """The share of each candidate, and that of "something else".

    >>> only = Candidate("a", prior=0.0, explains=("x",), evidence=())
    >>> probabilities([only], ["x"], Weights())
    ({'a': 0.5}, 0.5)
    """
    known = weights() if by is None else by
    bits = {c.id: score(c, ill_signs, known) - known.other for c in candidates}
    top = max([0.0, *bits.values()])
    odds = {cause: 2.0 ** max(b - top, -60.0) for cause, b in bits.items()}
    other = 2.0**-top if top < 60 else 0.0
    total = sum(odds.values()) + other
    return {cause: w / total for cause, w in odds.items()}, other / total


def grade_of(probability: float, decided: bool) -> Grade:
    if decided and probability >= LIKELY:
        return "is"
    if probability >= IS:
        return "is-p"
    return "suspected"


def ill_signs_of(findings: Sequence[Finding]) -> list[str]:
    return list(dict.fromkeys(f.id for f in findings if f.severity == "ill"))
