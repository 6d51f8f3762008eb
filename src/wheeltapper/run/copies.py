"""One series told twice: by a console and a CSV, by TensorBoard and the state of a trainer, from 0 and from 1.

Two writers of one training print other digits, count from 0 or from 1 or by another clock, and one of them may have been
stopped earlier. What they share is the values in their order. Five of them that agree to the digits printed do not agree by
chance.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

from wheeltapper.reading.record import Floats, Points
from wheeltapper.run.launches import LEAST, decimals
from wheeltapper.run.model import same_values
from wheeltapper.run.names import Meaning, canonical

AGREE = 0.9  # of the common values: a few rows may have been written while they were still changing
SURE = 5  # values in their order that agree: enough to say that two files are of one training
MOST_FILES = 60  # files that tell one series and are compared pair by pair
_CLOCKS = {"step": 0, "micro_step": 1, "epoch": 2, "sample": 3, "token": 4, "second": 5, "row": 6}


def same_story(p: Points, q: Points, least: int = LEAST) -> bool:
    """Do two columns hold the values of one series, as far as both go?"""
    if min(len(p.values), len(q.values)) < least:
        return False
    return _by_clock(p, q, least) or _in_order(p.values, q.values, least) or _drawn_again(p.values, q.values, least)


def _by_clock(p: Points, q: Points, least: int) -> bool:
    """On a clock that both tell, from 0 or from 1."""
    for clock in {p.clock, *p.clocks} & {q.clock, *q.clocks} - {"second", "row"}:
        a, b = (x.at if x.clock == clock else x.clocks[clock] for x in (p, q))
        for shift in (0.0, 1.0, -1.0):
            _, i, j = np.intersect1d(a, b + shift, return_indices=True)
            if len(i) >= least and _agree(p.values[i], q.values[j]):
                return True
    return False


def _in_order(a: Floats, b: Floats, least: int) -> bool:
    """By their order: from the start, or up to the end."""
    n = min(len(a), len(b))
    return n >= least and (_agree(a[:n], b[:n]) or (len(a) != len(b) and _agree(a[-n:], b[-n:])))


def _drawn_again(a: Floats, b: Floats, least: int) -> bool:
    """A bar shows a value until the next comes."""
    short = [x[np.append(True, x[1:] != x[:-1])] for x in (a, b)]
    return (len(short[0]) < len(a) or len(short[1]) < len(b)) and _in_order(short[0], short[1], least)


def _agree(a: Floats, b: Floats) -> bool:
    """To the digits that the coarser prints, as a fraction or in percent; a constant tells nothing."""
    if len(np.unique(a)) < 3 or len(np.unique(b)) < 3:
        return bool(len(a) >= SURE and len(np.unique(a)) == len(np.unique(b)) == 2 and np.all(same_values(a, b)))
    for scale in (1.0, 100.0, 0.01):
        with np.errstate(invalid="ignore", over="ignore"):
            coarse = 0.6 * 10.0 ** -min(decimals(a * scale), decimals(b))
            if scale == 1.0 and coarse > 0.1 * float(np.ptp(a[np.isfinite(a)]) if np.isfinite(a).any() else 0.0):
                continue  # whole numbers agree too easily
            close = (np.abs(a * scale - b) <= coarse) | same_values(a * scale, b)
            few = np.abs(a * scale - b) <= 6e-4 * np.abs(b)  # three digits printed of any number
        if float(np.mean(close)) >= AGREE or float(np.mean(few)) >= AGREE:
            return True
    return False


def tell_one_training(mine: Iterable[tuple[str, Points]], theirs: Iterable[tuple[str, Points]]) -> bool:
    """Do two lots of losses and scores, each by its name, have one in common?"""
    known = defaultdict(list)
    for label, p in mine:
        known[label].append(p)
    return any(same_story(p, q, SURE) for label, q in theirs for p in known.get(label, ()))


def without_copies(points: Sequence[Points], meanings: Sequence[Meaning]) -> list[Points]:
    """The points without those that another file tells as well, and better."""
    by_label: dict[str, list[int]] = defaultdict(list)
    for i, (p, meaning) in enumerate(zip(points, meanings, strict=True)):
        if not p.woven and p.rank is None:
            by_label[canonical(meaning, p.name, p.about)].append(i)
    several = [
        sorted(members, key=lambda i: _worth([points[j] for j in members], points[i]))
        for members in by_label.values()
        if len({points[i].file for i in members}) > 1 and len(members) <= MOST_FILES
    ]
    pairs = [(points[i], points[j], j) for ranked in several for i, j in combinations(ranked, 2)]
    proven = [same_story(p, q) if p.file != q.file else False for p, q, _ in pairs]
    twins = {frozenset((p.file, q.file)) for (p, q, _), same in zip(pairs, proven, strict=True) if same}
    dropped: set[int] = set()
    kept = {id(p) for p, _, _ in pairs}
    for (p, q, j), same in zip(pairs, proven, strict=True):
        again = same or (frozenset((p.file, q.file)) in twins and _side_by_side(p, q))
        if again and id(p) in kept and j not in dropped and _adds_nothing(p, q):
            dropped.add(j)
            kept.discard(id(q))
    return [p for i, p in enumerate(points) if i not in dropped]


def _side_by_side(p: Points, q: Points) -> bool:
    """Two columns of files that tell one training elsewhere: as many rows, or at the same places."""
    return abs(len(p.at) - len(q.at)) <= 1 or (p.clock == q.clock and float(np.isin(q.at, p.at).mean()) >= AGREE)


def _adds_nothing(p: Points, q: Points) -> bool:
    """On one clock, rows that only the other has are still wanted; merging the two keeps them."""
    return p.clock != q.clock or len(q.at) <= len(p.at) or float(np.isin(p.at, q.at).mean()) < AGREE


def _worth(fellows: list[Points], p: Points) -> tuple[bool, bool, float, int, int, str]:
    """What tells where it stands, whole, on the finest clock and with the most digits comes first."""
    longest = max(_changes(q.values) for q in fellows)
    short = len(p.at) < AGREE * longest
    nominal = "tfevents" in p.file  # TensorBoard's step is whatever the writer counted: ticks, epochs
    return (p.clock == "row", short, 3.5 if nominal else _CLOCKS[p.clock], -_digits(p.values), -len(p.clocks), p.file)


def _changes(values: Floats) -> int:
    """Different values: a bar shows each many times."""
    return len(np.unique(values))


def _digits(values: Floats) -> int:
    """Digits that the values were printed with, by those of the first rows."""
    shown = [len(f"{v:.8g}".split("e")[0].lstrip("-0.").replace(".", "")) for v in values[:20].tolist()]
    return max(shown, default=0)
