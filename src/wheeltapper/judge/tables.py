"""The fitted tables: how often each state of each observation was seen in healthy runs and under each cause.

Counts, not judgements: `wheeltapper lab fit` writes fitted.json from runs of known truth. Bits follow from the counts by one
formula: log2 of how much likelier a state is under a cause than in a healthy run. What came of a run under a cause that was seldom
seen is taken to be like that of all ill runs; its settings, like those of healthy ones. A cause that was never seen speaks through what
it declares (SHOWS), at most 1.5 bits an observation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import msgspec
import numpy as np

from wheeltapper.observations import Observation, observations
from wheeltapper.reading.record import Floats
from wheeltapper.rules.causes import Cause, causes

SHRINK = 3.0  # runs' worth of all ill runs (of healthy ones, for settings) in the distribution of a cause
ALIKE = 0.4  # of that distribution is of ill runs: what one cause does to the curves, others do too; the rest is healthy
DECLARED = 2.0  # runs' worth of what a cause declares to show
SMOOTH = 1.0  # runs' worth of the pooled distribution in the healthy one
NEIGHBOURS = 0.1  # of a count goes to each neighbouring state: the edges are not sharp
MOST = 8.0  # bits of one observation
UNMEASURED = 1.5  # bits of one observation for a cause that no labelled run had
FEWEST = 2  # labelled runs that make a cause measured
ENOUGH = 3  # ill runs that a sign stood in
SIGN_STATES = 4  # clear, note, watch, ill
BAND_WORTH = 2.0  # runs' worth of the declared band: inside in healthy runs, outside in ill ones
RARE = 0.02  # of healthy runs have it: an observation this far out of its band
NEVER = 0.003  # of healthy runs: none among at least 166
TOGETHER = "ill-signs"  # a rare sign counts through the record of the others
FAR_OUT = "far-out"  # rare states of rare observations count through the record of all of them


class States(msgspec.Struct, frozen=True):
    """Counts by state."""

    healthy: list[int]
    ill: list[int]
    causes: dict[str, list[int]]
    weight: float = 0.5


class Pointers(msgspec.Struct, frozen=True):
    """How often findings of one grade named the true cause, another one, or any in a healthy run."""

    hit: int
    miss: int
    false: int


class Tables(msgspec.Struct, frozen=True):
    """Everything that is fitted."""

    states: dict[str, States]
    causes: dict[str, int]  # labelled runs of each
    pointers: dict[str, Pointers]
    looked_ill: int  # runs with settings or code that could be checked
    looked_healthy: int
    healthy: int
    ill: int
    checks: dict[str, tuple[int, int]] = {}  # broken and healthy runs in which each check of the code gave a proof
    base_rate: float = 0.36  # of the runs that people bring are in trouble: of public ones that were labelled blind a third (96 of 290), of the benchmarks half
    calibration: list[tuple[float, float]] = []  # log odds as computed -> probability as observed on left-out runs
    made_of: dict[str, Any] = {}

    def never_healthy(self, sign: str) -> bool:
        """Whether a sign was ill in enough labelled ill runs, and in no healthy one."""
        known = self.states.get(sign)
        return known is not None and len(known.ill) == SIGN_STATES and known.ill[-1] >= ENOUGH and known.healthy[-1] == 0

    def measured(self, cause: str) -> bool:
        return self.causes.get(cause, 0) >= FEWEST


@cache
def tables() -> Tables:
    """The tables that ship with the package."""
    data = (resources.files("wheeltapper.judge") / "fitted.json").read_bytes()
    return msgspec.json.decode(data, type=Tables)


@cache
def _observations() -> dict[str, Observation]:
    return {o.id: o for o in observations()}


UNFITTED = 1.0  # weight of an observation that no labelled run had


def weight_of(held: Tables, id_: str) -> float:
    """How much an observation counts; one that was never measured counts by its declared band alone."""
    known = held.states.get(id_)
    if known is not None:
        return known.weight
    return UNFITTED if outside_of(id_) else 0.0


def is_setting(id_: str) -> bool:
    """Whether it is a number of the settings, not of what came of them."""
    observation = _observations().get(id_)
    return observation is not None and observation.setting


def group_of(id_: str) -> str:
    """Observations of one group say the same thing."""
    observation = _observations().get(id_)
    return observation.group if observation is not None else ""


def state_count(id_: str) -> int:
    observation = _observations().get(id_)
    return SIGN_STATES if observation is None else len(observation.edges) + 1


def fits_word(id_: str, word: str) -> list[int]:
    """The states that a word of SHOWS or FORBIDS means."""
    observation = _observations().get(id_)
    if observation is None:
        return [0] if word == "clear" else [SIGN_STATES - 2, SIGN_STATES - 1]
    every = range(len(observation.edges) + 1)
    inside = [s for s in every if observation.inside(s)]
    if word == "in":
        return inside
    low = [s for s in every if not inside or s < inside[0]]
    high = [s for s in every if inside and s > inside[-1]]
    return {"low": low, "high": high, "out": [*low, *high]}[word]


def _spread(counts: Floats) -> Floats:
    """Counts, a little of each given to its neighbours; by rows where there are several."""
    if counts.shape[-1] <= 2:
        return counts
    left, right = np.zeros_like(counts), np.zeros_like(counts)
    left[..., :-1], right[..., 1:] = counts[..., 1:], counts[..., :-1]
    return np.asarray((1 - 2 * NEIGHBOURS) * counts + NEIGHBOURS * (left + right))


def _shares(counts: Floats, prior: Floats, worth: Floats | float) -> Floats:
    spread = _spread(counts)
    return np.asarray((spread + worth * prior) / (spread.sum(axis=-1, keepdims=counts.ndim > 1) + worth))


def _as_array(counts: list[int] | None, n: int) -> Floats:
    out = np.zeros(n)
    given = (counts or [])[:n]
    out[: len(given)] = given
    return out


@dataclass(frozen=True)
class Hypotheses:
    """Healthy, every cause, something else: their order, and their share before anything was seen."""

    ids: tuple[str, ...]
    prior: Floats  # natural logarithms

    def index(self, id_: str) -> int | None:
        return self.ids.index(id_) if id_ in self.ids else None


HEALTHY, SOMETHING_ELSE = "healthy", "something-else"
OTHER_SHARE = 0.15  # of ill runs have none of the causes we know


def hypotheses(held: Tables, ids: tuple[str, ...], own: tuple[str, ...] = ()) -> Hypotheses:
    """The causes to be weighed, with `own` causes that only a finding of the code names."""
    names = (HEALTHY, *ids, *own, SOMETHING_ELSE)
    known = np.asarray([held.causes.get(c, 0) + 0.5 for c in (*ids, *own)])
    shares = (1 - OTHER_SHARE) * known / known.sum() if len(known) else known
    ill = held.base_rate
    return Hypotheses(names, np.log(np.concatenate([[1 - ill], ill * shares, [ill * OTHER_SHARE]])))


@cache
def outside_of(id_: str) -> tuple[int, ...]:
    """The states outside the declared band (of a sign: ill); none for settings and for what has no band."""
    observation = _observations().get(id_)
    if observation is None:
        return () if id_ in POOLED else (SIGN_STATES - 1,)
    if observation.setting:
        return ()
    return tuple(s for s in range(len(observation.edges) + 1) if not observation.inside(s))


POOLED = (TOGETHER, FAR_OUT)


def healthy_tail(held: Tables, id_: str, state: int, own: bool = False) -> float:
    """The share of healthy runs that went at least as far out of the band on the same side. `own`: without the run itself, which
    is healthy and counted."""
    known = held.states.get(id_)
    healthy = known.healthy if known is not None else []
    inside = [s for s in range(len(healthy)) if s not in outside_of(id_)]
    low = bool(inside) and state < inside[0]
    there = sum(healthy[: state + 1]) if low else sum(healthy[state:])
    return (there - own + 0.5) / (sum(healthy) - own + 1.0)


def far_out(held: Tables, states: Mapping[str, int], own: bool = False) -> int:
    """How far the observations are out of their bands, taken together: not, as few healthy runs, as none, or several as none."""
    few: set[str] = set()
    none: set[str] = set()
    for id_, state in states.items():
        if state in outside_of(id_):
            share = healthy_tail(held, id_, state, own)
            (none if share < NEVER else few if share < RARE else set()).add(group_of(id_) or id_)
    return 3 if len(none) > 1 else 2 if none else int(bool(few))


@dataclass(frozen=True)
class Counted:
    """The counts of one observation, ready to be compared: by cause (rows) and state (columns)."""

    healthy: Floats
    ill: Floats
    causes: Floats
    declared: Floats  # what each cause declares to show, as shares; zeros where nothing
    most: Floats  # bits at most, by cause
    band: Floats  # shares of the declared band: inside, outside (rows); zeros where there is none
    speaks: Floats  # by cause: 0 where this observation is none of its business
    setting: bool  # of the settings: a cause says nothing of those that it does not name


def counted(held: Tables, id_: str, ids: tuple[str, ...]) -> Counted:
    n = state_count(id_)
    states = held.states.get(id_) or States([], [], {})
    marks = np.zeros((len(ids), n))
    for row, c in enumerate(ids):
        cause = declared_causes().get(c)
        shown = fits_word(id_, cause.shows[id_]) if cause is not None and id_ in cause.shows else []
        marks[row, shown] = 1.0 / max(len(shown), 1)
    by_cause = np.asarray([_as_array(states.causes.get(c), n) for c in ids])
    most = np.asarray([[MOST if held.measured(c) else UNMEASURED] for c in ids]) * math.log(2)
    band = np.zeros((2, n))
    outside = list(outside_of(id_))
    if outside and len(outside) < n:
        band[1, outside] = 1.0 / len(outside)
        band[0] = (band[1] == 0) / (n - len(outside))
    speaks = np.asarray([[float(_concerns(id_, c))] for c in ids])
    return Counted(_as_array(states.healthy, n), _as_array(states.ill, n), by_cause, marks, most, band, speaks, is_setting(id_))


def _concerns(id_: str, cause_id: str) -> bool:
    """Pace and memory speak of efficiency and crashes, not of what was learned; unless a cause says so."""
    observation, cause = _observations().get(id_), declared_causes().get(cause_id)
    if observation is None or observation.about != "efficiency" or cause is None:
        return True
    return cause.about in ("efficiency", "crash") or id_ in cause.shows


def log_ratios(known: Counted, drop: tuple[int | None, int] | None = None) -> Floats:
    """By hypothesis (rows) and state (columns), the natural log of a state's likelihood over the healthy one.

    `drop`: (row of the true cause, -1 for one that is not listed, or None for healthy; state) of a run that must not testify for itself.
    """
    healthy, ill, by_cause = known.healthy, known.ill, known.causes
    if drop is not None:
        row, state = drop
        healthy, ill, by_cause = healthy.copy(), ill.copy(), by_cause.copy()
        side = healthy if row is None else ill
        side[state] -= 1
        if row is not None and row >= 0:
            by_cause[row, state] = max(by_cause[row, state] - 1, 0)
    n = len(healthy)
    pool = (healthy + ill + 0.5) / (healthy.sum() + ill.sum() + 0.5 * n)
    inside, outside = BAND_WORTH * known.band
    base = _shares(healthy, (SMOOTH * pool + inside) / (SMOOTH + inside.sum()), SMOOTH + inside.sum())
    told = DECLARED * known.declared.sum(axis=1, keepdims=True)
    measured = (known.most > UNMEASURED * math.log(2)) & (not known.setting)
    usual = np.where(measured, (1 - ALIKE) * base + ALIKE * _shares(ill, base, SHRINK), base)
    prior = (SHRINK * usual + DECLARED * known.declared) / (SHRINK + told)
    rows = known.speaks * np.clip(np.log(_shares(by_cause, prior, SHRINK + told) / base), -known.most, known.most)
    likely = (SHRINK * base + outside) / (SHRINK + outside.sum())
    most = (MOST if ill.sum() >= FEWEST else UNMEASURED) * math.log(2)
    other = np.clip(np.log(_shares(ill, likely, SHRINK + outside.sum()) / base), -most, most)
    return np.vstack([np.zeros(n), rows, other])


@cache
def declared_causes() -> dict[str, Cause]:
    return {cause.id: cause for cause in causes()}
