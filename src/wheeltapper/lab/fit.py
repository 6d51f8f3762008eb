"""The weights of evidence, measured on runs whose truth is known.

Maximum likelihood of the true cause under the very formula that ranks causes (diagnosis/rank.py), with each factor held
near 1 by a normal prior in the logarithm, so that a cause seen twice keeps the judgement of its author. A run whose true
cause is no candidate teaches how much "something else" should hold. Tested on other systems than it was fitted on (leave
one system out), beside judgement alone.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from wheeltapper.api import audited, read
from wheeltapper.causes._weights import CERTAIN, Weights
from wheeltapper.diagnosis.diagnose import ask_run, candidates_of
from wheeltapper.diagnosis.rank import Candidate, ill_signs_of, probabilities, score
from wheeltapper.errors import InputError, WheeltapperError
from wheeltapper.lab.score import LESSER
from wheeltapper.lab.truth import Truth, load_all

LEAST = 4  # runs in which a cause and group must have been seen for a factor of its own
SPREAD = 0.35  # of the logarithm of a factor: most judgements are right within a factor of e^0.35 either way
STEPS, RATE = 1500, 0.03


@dataclass(frozen=True, slots=True)
class Item:
    """One ill run: its candidates with their evidence, and which of them is true."""

    system: str
    candidates: tuple[Candidate, ...]  # with their evidence as the causes judge it
    ill: tuple[str, ...]  # the signs to be explained
    right: tuple[bool, ...]  # of each candidate; none: "something else" is true


def collect(out: Path) -> list[Item]:
    """What would be weighed in every harmed run of a labelled set that is called ill, unfitted."""
    items = [found for truth in load_all(out) if _counts(truth) for found in _item(truth, out)]
    if not items:
        raise InputError(f"{out} holds no ill lab runs", do=f"Make some with: wheeltapper lab corpus -o {out}")
    return items


def _counts(truth: Truth) -> bool:
    return truth.kind == "fault" and truth.manifested is not False and truth.harm not in LESSER


def _item(truth: Truth, out: Path) -> list[Item]:
    try:
        runs = read(out / "runs" / truth.run)
    except WheeltapperError:
        return []
    run = max(runs, key=lambda r: len(r.series))
    case = ask_run(run, audit=audited(run)).case
    ill = ill_signs_of(case.findings)
    if not ill:
        return []
    found, _ = candidates_of(case, ill, Weights())
    held = tuple(candidate for _, candidate in found.values())
    true = {truth.cause, *truth.also}
    return [Item(truth.system, held, tuple(ill), tuple(c.id in true for c in held))]


def fit(items: Sequence[Item]) -> Weights:
    """Adam on the negative log-likelihood; the problem is small and smooth."""
    seen = Counter((c.id, e.group) for item in items for c in item.candidates for e in c.evidence)
    keys = [key for key, n in seen.items() if n >= LEAST and key[1] not in CERTAIN]
    index = {key: 1 + k for k, key in enumerate(keys)}
    theta = np.zeros(1 + len(keys))  # "something else", then log factors
    first, second = np.zeros_like(theta), np.zeros_like(theta)
    for step in range(1, STEPS + 1):
        slope = _slope(items, theta, index)
        first, second = 0.9 * first + 0.1 * slope, 0.99 * second + 0.01 * slope**2
        theta -= RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.99**step)) + 1e-9)
    return _weights(theta, index)


def _weights(theta: Any, index: dict[tuple[str, str], int]) -> Weights:
    factors: dict[str, dict[str, float]] = {}
    for (cause, group), k in sorted(index.items()):
        factors.setdefault(cause, {})[group] = round(math.exp(theta[k]), 3)
    return Weights(round(float(theta[0]), 3), factors=factors)


def _slope(items: Sequence[Item], theta: Any, index: dict[tuple[str, str], int]) -> Any:
    """Gradient of the loss per run plus that of the prior on the parameters."""
    slope = theta / SPREAD**2
    slope[0] = theta[0] / 4  # "something else": within two bits of none
    judged = Weights()  # a lab run has one fault, so how rare two are (unexplained) cannot be learned here
    for item in items:
        bits = np.array([score(replace(c, evidence=()), item.ill, judged) for c in item.candidates])
        parts: list[list[tuple[int, float]]] = []  # of each candidate: the factors at work, and what each adds
        for n, candidate in enumerate(item.candidates):
            own = []
            for e in candidate.evidence:
                k = index.get((candidate.id, e.group))
                worth = e.bits * math.exp(theta[k]) if k is not None else e.bits
                bits[n] += worth
                own += [(k, worth)] if k is not None else []
            parts.append(own)
        z = np.append(bits, theta[0])
        p = np.exp2(z - z.max())
        p /= p.sum()
        right = np.array([*item.right, not any(item.right)])
        pull = p - np.where(right, p, 0.0) / max(p[right].sum(), 1e-12)  # d loss / d bits, up to ln 2
        for n, own in enumerate(parts):
            for k, worth in own:
                slope[k] += pull[n] * worth
        slope[0] += pull[-1]
    return slope


def shares(item: Item, by: Weights) -> tuple[list[float], float]:
    """The probability of each candidate and of "something else"."""
    again = [
        replace(c, evidence=tuple(replace(e, bits=e.bits * by.of(c.id, e.group)) for e in c.evidence))
        for c in item.candidates
    ]
    found, other = probabilities(again, item.ill, by)
    return [found[c.id] for c in item.candidates], other


def judge(items: Sequence[Item], by: Weights) -> dict[str, float]:
    """How good weights are on ill runs: bits lost per run, the true cause first, and by how much "said" misses "right"."""
    loss, hits, said = 0.0, 0, 0.0
    off = []
    for item in items:
        p, other = shares(item, by)
        true = sum(v for v, right in zip(p, item.right, strict=True) if right) if any(item.right) else other
        loss -= math.log2(max(true, 1e-9))
        best = int(np.argmax(p)) if p else -1
        hit = best >= 0 and item.right[best]
        hits += hit
        said += p[best] if best >= 0 else 0.0
        off.append((p[best] if best >= 0 else 0.0, float(hit)))
    n = max(1, len(items))
    return {"runs": len(items), "bits": loss / n, "first": hits / n, "said": said / n, "off": calibration_error(off)}


def calibration_error(pairs: Sequence[tuple[float, float]]) -> float:
    """Mean distance between what is said and what is right over fifths of equal size."""
    ordered = sorted(pairs)
    parts = [part for part in np.array_split(np.array(ordered), min(5, len(ordered))) if len(part)] if ordered else []
    return float(sum(len(part) * abs(part[:, 0].mean() - part[:, 1].mean()) for part in parts) / max(1, len(ordered)))


def leave_one_out(items: Sequence[Item]) -> dict[str, tuple[dict[str, float], dict[str, float]]]:
    """For each system: judgement alone, and weights fitted on the other systems, both on its runs."""
    out = {}
    for name in sorted({item.system for item in items}):
        own, rest = [i for i in items if i.system == name], [i for i in items if i.system != name]
        if rest:
            out[name] = (judge(own, Weights()), judge(own, fit(rest)))
    return out


def as_json(by: Weights, made: dict[str, Any]) -> dict[str, Any]:
    return {"made": made, "other": by.other, "factors": by.factors}
