"""From what was seen to probabilities: healthy, every cause, something else.

Weights of evidence as Turing and Good used them, added up in one place. Every observation adds bits to each hypothesis, times a
weight that corrects for observations that say the same; a finding of code or settings adds bits to the cause it names. What a
cause forbids excludes it. The probability of being ill is one minus that of being healthy, as calibrated on left-out runs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from wheeltapper.judge.echo import without_echoes
from wheeltapper.judge.evidence import Evidence, Grade, Pointer, Seen
from wheeltapper.judge.tables import (
    FAR_OUT,
    SOMETHING_ELSE,
    Hypotheses,
    Pointers,
    Tables,
    counted,
    declared_causes,
    far_out,
    fits_word,
    group_of,
    healthy_tail,
    hypotheses,
    is_setting,
    log_ratios,
    outside_of,
    tables,
    weight_of,
)
from wheeltapper.reading.record import Floats
from wheeltapper.rules.signs import deciding

LN2 = math.log(2)
PSEUDO = 1.0  # finding of the usual check in the record of each: its own counts speak against those of all
NAMED = 40  # causes: a finding is no surer of a rare cause than of one in so many
PROOF = 10.0  # times as often in broken programs as in healthy ones: a finding that is as good as a proof
EVEN = 0.5  # probability from which the rest of the evidence speaks for trouble, too
AGREES = 0.1  # probability from which the rest of the evidence does not speak against a sign
ALONE = 3.0  # bits that settings may give beyond what came of the run
SUSPICION = math.log(4)  # odds that a setting beyond its working range can give alone
STRONGEST = 14.0  # bits of all findings of code and settings together


@dataclass(frozen=True, slots=True)
class Item:
    """Bits that one thing gave to one hypothesis."""

    bits: float
    seen: Seen | Pointer


@dataclass(frozen=True)
class Posterior:
    """Probabilities, and where they come from."""

    p_ill: float
    shares: dict[str, float]  # of each cause and of something else, given that the run is ill; they sum to 1
    items: dict[str, tuple[Item, ...]]  # strongest first
    excluded: dict[str, Seen]  # by what was seen
    log_odds: float = 0.0


@dataclass(frozen=True)
class Scores:
    """Natural log scores by hypothesis: to rank causes by, and to tell ill from healthy by."""

    ids: tuple[str, ...]
    ranking: Floats
    illness: Floats
    gains: list[tuple[str, Floats]]  # by observation, in the order given; then one for each pointer


def scores(
    held: Tables, states: Mapping[str, int], pointers: Sequence[tuple[str, Grade, str]], known_ratios: dict[str, Floats] | None = None
) -> Scores:
    """What the states of the observations and the findings of code and settings give to every hypothesis.

    Settings count in full for which cause it is. For whether anything is wrong they count by three bits more than what came of
    the run says itself, and one beyond its working range makes a suspicion of four to one at most: a setting alone never makes a run
    ill.
    """
    declared = declared_causes()
    own = tuple(dict.fromkeys(cause for cause, _, _ in pointers if cause not in declared))
    hyp = hypotheses(held, tuple(declared), own)
    gains: list[tuple[str, Floats]] = []
    outcome, settings = np.zeros(len(hyp.ids)), np.zeros(len(hyp.ids))
    for id_, state in (*states.items(), (FAR_OUT, far_out(held, states))):
        weight = weight_of(held, id_)
        if weight <= 0:
            continue
        column = weight * _ratios(held, id_, tuple(declared), known_ratios)[:, state]
        other = column[-1:] * (not is_setting(id_))  # a setting that we know speaks for no unknown cause
        gain = np.concatenate([column[:-1], np.zeros(len(own)), other])
        gains.append((id_, gain))
    gains = _strongest(gains)
    for id_, gain in gains:
        if is_setting(id_):
            settings += gain
        else:
            outcome += gain
    ranged = np.zeros(len(hyp.ids))
    for cause, grade, check in pointers:
        gain = pointed(held, cause, grade, check, hyp)
        gains.append((cause, gain))
        if grade in ("range", "edge"):
            ranged += gain
        else:
            outcome += gain
    allowed = ALONE * LN2 + np.maximum(outcome, 0.0)
    suspicion = np.maximum(SUSPICION + hyp.prior[0] - hyp.prior, 0.0)
    illness = hyp.prior + outcome + np.minimum(settings, allowed) + np.minimum(ranged, suspicion)
    return Scores(hyp.ids, hyp.prior + outcome + settings + ranged, illness, gains)


def _strongest(gains: list[tuple[str, Floats]]) -> list[tuple[str, Floats]]:
    """Of observations that say the same thing only the strongest counts, for each hypothesis."""
    groups: dict[str, list[Floats]] = {}
    for id_, gain in gains:
        groups.setdefault(group_of(id_) or id_, []).append(gain)
    top = {name: np.max(np.abs(found), axis=0) for name, found in groups.items() if len(found) > 1}
    return [
        (id_, np.where(np.abs(gain) >= top[name], gain, 0.0) if (name := group_of(id_) or id_) in top else gain)
        for id_, gain in gains
    ]


def weigh(evidence: Evidence, held: Tables | None = None, trials: Sequence[tuple[str, float]] = ()) -> Posterior:
    """The posterior of one run. `trials`: (cause, bits) of what trials of this run said."""
    held = tables() if held is None else held
    seen = [s for s in evidence.seen if weight_of(held, s.id) > 0]
    found = scores(held, {s.id: s.state for s in seen}, [(p.cause, p.grade, p.finding.id) for p in evidence.pointers])
    ids, ranking, illness = found.ids, found.ranking.copy(), found.illness.copy()
    for cause, bits in trials:
        if cause in ids:
            ranking[ids.index(cause)] += bits * LN2
            illness[ids.index(cause)] += bits * LN2
    proved = {p.cause for p in evidence.pointers if p.grade == "proof"}
    excluded = _excluded(evidence.seen, proved | {cause for cause, bits in trials if bits > 0})
    for cause in excluded:
        ranking[ids.index(cause)] = illness[ids.index(cause)] = -math.inf
    what: list[Seen | Pointer] = [*seen, *_far_out(held, seen), *evidence.pointers]
    items = [(gain, thing) for (_, gain), thing in zip(found.gains, what, strict=True)]
    shares = np.exp(ranking[1:] - ranking[1:].max())
    by_cause = {id_: float(s) for id_, s in zip(ids[1:], shares / shares.sum(), strict=True)}
    odds = log_odds(illness)
    return Posterior(_stands(calibrated(odds, held.calibration), evidence, held), by_cause, _items(by_cause, ids, items), excluded, odds)


def _far_out(held: Tables, seen: Sequence[Seen]) -> list[Seen]:
    """How far the observations are out of their bands, as one thing that was seen."""
    if weight_of(held, FAR_OUT) <= 0:
        return []
    state = far_out(held, {s.id: s.state for s in seen})
    farthest = min(
        (s for s in seen if s.state in outside_of(s.id)), key=lambda s: healthy_tail(held, s.id, s.state), default=None
    )
    if farthest is None or state == 0:
        return [Seen(FAR_OUT, 0, True, "no observation is farther out of its band than healthy runs go", "learning")]
    looked = sum(held.states[farthest.id].healthy) if farthest.id in held.states else 0
    words = ("", "few of {n} healthy runs go as far", "none of {n} healthy runs goes as far", "none of {n} healthy runs goes as far, here and elsewhere")
    text = f"{farthest.text or farthest.id}: {words[state].format(n=f'{looked:,}')}"
    return [Seen(FAR_OUT, state, False, text, farthest.about, None, farthest.series, farthest.clock, farthest.onset, farthest.places)]


def _stands(p: float, evidence: Evidence, held: Tables) -> float:
    """What decides stands alone (a loss that is not finite to the end). A sign or proof stands where the rest speaks for trouble as well; a sign that
    stood in labelled ill runs and in no healthy one, where the rest does not speak against it. The probability is moved above the line,
    its order kept."""
    ill = {f.id for f in without_echoes(evidence.findings) if f.severity == "ill" and f.grade != "suspected"}
    agreed = p >= EVEN or (p >= AGREES and any(held.never_healthy(id_) for id_ in ill))
    proved = any(is_proof(held, pointer) for pointer in evidence.pointers)
    stands = bool(ill & deciding()) or (bool(ill) and agreed) or (proved and p >= EVEN)
    return max(p, 0.9 + 0.1 * p) if stands else p


def log_odds(illness: Floats) -> float:
    """Of being ill, from the scores of all hypotheses; the first is healthy."""
    top = float(np.max(illness))
    return float(np.log(np.exp(illness[1:] - top).sum() + 1e-300)) - (float(illness[0]) - top)


def _items(shares: dict[str, float], ids: tuple[str, ...], gains: list[tuple[Floats, Seen | Pointer]]) -> dict[str, tuple[Item, ...]]:
    out = {}
    for id_, share in shares.items():
        if share >= 0.005 or id_ == SOMETHING_ELSE:
            i = ids.index(id_)
            found = [Item(float(g[i]) / LN2, what) for g, what in gains if abs(float(g[i])) > 0.05]
            out[id_] = tuple(sorted(found, key=lambda item: -abs(item.bits)))
    return out


@cache
def _shipped_ratios(id_: str) -> Floats:
    return log_ratios(counted(tables(), id_, tuple(declared_causes())))


def _ratios(held: Tables, id_: str, ids: tuple[str, ...], known: dict[str, Floats] | None) -> Floats:
    """The table of one observation; computed once for the tables that ship, and once for `known` of others."""
    if known is None:
        return _shipped_ratios(id_) if held is tables() else log_ratios(counted(held, id_, ids))
    if id_ not in known:
        known[id_] = log_ratios(counted(held, id_, ids))
    return known[id_]


def is_proof(held: Tables, pointer: Pointer) -> bool:
    return pointer.grade == "proof" and finding_ratio(held, "proof", pointer.finding.id) >= PROOF


def finding_ratio(held: Tables, grade: Grade, check: str, own: int = 0) -> float:
    """How much oftener a finding stands in broken programs than in healthy ones. Findings of a grade count together; a proof by the
    record of its own check, which is held near that of all checks while it is short. `own`: broken runs that do not count."""
    counts = held.pointers.get(grade, Pointers(0, 0, 0))
    ill, well = held.looked_ill + 1.0, held.looked_healthy + 1.0
    right, wrong = (counts.hit + counts.miss + 0.5) / ill, (counts.false + 0.5) / well
    if grade != "proof" or not held.checks:
        return right / wrong
    own_right, own_wrong = held.checks.get(check, (0, 0))
    return (max(0, own_right - own) + PSEUDO) / ill / (own_wrong / well + PSEUDO / ill * wrong / right)


def pointed(held: Tables, cause: str, grade: Grade, check: str, hyp: Hypotheses, own: int = 0) -> Floats:
    """What a finding gives to every hypothesis: its ratio to being ill, of which the cause that it names gets its share of right names."""
    counts = held.pointers.get(grade, Pointers(0, 0, 0))
    named = (counts.hit + 0.5) / (counts.hit + counts.miss + 1.0)
    at = hyp.ids.index(cause)
    share = max(1.0 / NAMED, float(np.exp(hyp.prior[at] - np.logaddexp.reduce(hyp.prior[1:]))))
    ratio = math.log(finding_ratio(held, grade, check, own))
    others = ratio + math.log((1 - named) / (1 - share))
    gain = np.full(len(hyp.ids), min(0.0, others))  # where something else is wrong, a finding stands as seldom as in healthy runs
    gain[0], gain[at] = 0.0, min(ratio + math.log(named / share), STRONGEST * LN2)
    return gain


def _excluded(seen: Sequence[Seen], confirmed: set[str]) -> dict[str, Seen]:
    """Causes that forbid what was seen; a proof or a trial that confirmed one outweighs that: the reason was only thought."""
    by_id = {s.id: s for s in seen}
    out = {}
    for cause in declared_causes().values():
        for id_, word in cause.forbids.items():
            found = by_id.get(id_)
            if found is not None and found.state in fits_word(id_, word) and cause.id not in confirmed:
                out[cause.id] = found
    return out


def calibrated(log_odds: float, knots: Sequence[tuple[float, float]]) -> float:
    """The probability that was observed, on left-out runs, where the sum of the evidence was this."""
    if not knots:
        return 1.0 / (1.0 + math.exp(-max(min(log_odds, 60.0), -60.0)))
    at, p = zip(*knots, strict=True)
    return float(np.interp(log_odds, at, p))
