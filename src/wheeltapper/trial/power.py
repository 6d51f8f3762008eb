"""How many more pairs would probably tell: the trial played on from where it stands."""

from __future__ import annotations

import numpy as np

from wheeltapper.reading.record import Floats
from wheeltapper.trial.model import Rule
from wheeltapper.trial.sequential import bet_on_moments, fewer_evalue, over_evalue

PLAYS = 400  # 400 plays give the 80 % point within about 2 pairs of 20
FURTHEST = 60  # further pairs are not worth a trial: a longer arm or a larger dose is
SURE = 0.8  # share of plays that must have decided


def first_guess(rule: Rule) -> int:
    """Before anything has run: what a clear effect needs with so many arms (KNOWLEDGE TRL-05, LOG.md)."""
    return 4 if rule.arms <= 3 else 5


def pairs_for_difference(x: Floats, floor: float, rule: Rule, least: int) -> int | None:
    """Further pairs after which 8 of 10 such trials are decided, if mean and spread are as they look now."""
    n = len(x)
    if n < 2:
        return least - n
    rng = np.random.default_rng(0)
    spread = max(float(x.std(ddof=1)), floor)
    new = rng.normal(float(x.mean()), spread, (PLAYS, FURTHEST)) if spread else np.full((1, FURTHEST), x.mean())
    first, second = x.sum() + np.cumsum(new, 1), (x**2).sum() + np.cumsum(new**2, 1)
    undecided = np.ones(len(new), dtype=bool)
    for further in range(1, FURTHEST + 1):
        many = n + further
        mean = first[:, further - 1] / many
        rest = np.maximum(second[:, further - 1] - many * mean**2, max((many - 1) * floor**2, 1e-24))
        up = bet_on_moments(mean, rest, many, one_sided=True) >= rule.arms / rule.alpha
        down = bet_on_moments(-mean, rest, many, one_sided=True) >= 1 / rule.beta
        undecided &= ~(up & (many >= least)) & ~down
        if undecided.mean() <= 1 - SURE:
            return further
    return None


def pairs_for_symptom(counts: tuple[int, int, int, int], rule: Rule, still: float) -> int | None:
    """The same for diverged-or-not; rates are shrunk by half a run each way, so 0 of 2 is not taken for never."""
    n = sum(counts)
    if n < 2:
        return first_guess(rule) - n  # one pair says nothing of rates
    rng = np.random.default_rng(0)
    share = (np.array(counts) + 0.25) / (n + 1)
    kinds = rng.choice(4, (PLAYS, FURTHEST), p=share)
    undecided = np.ones(PLAYS, dtype=bool)
    tally = np.tile(np.array(counts), (PLAYS, 1))
    for further in range(1, FURTHEST + 1):
        tally[np.arange(PLAYS), kinds[:, further - 1]] += 1
        # Plays with the same counts are weighed once: the driver waits for this after every run.
        rows, which = np.unique(tally[undecided], axis=0, return_inverse=True)
        in_arm, many = rows[:, 0] + rows[:, 2], np.full(len(rows), n + further)
        up = (fewer_evalue(*rows.T) >= rule.arms / rule.alpha) & (in_arm <= still * many)
        down = over_evalue(in_arm, many, still) >= 1 / rule.beta
        undecided[undecided] = ~(up | down)[which.reshape(-1)]
        if undecided.mean() <= 1 - SURE:
            return further
    return None


def say(more: int | None) -> str:
    if more is None:
        return f"Even {FURTHEST} more pairs would probably not tell: use a longer arm or a larger change."
    return f"About {more} more {'pair' if more == 1 else 'pairs'} would probably tell."
