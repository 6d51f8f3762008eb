"""How right the judge is on runs that its tables were not fitted on, as a page with counts and intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from wheeltapper.judge.model import Lines
from wheeltapper.judge.tables import Tables
from wheeltapper.lab.fit import Judged, p_ill

Z = 1.96  # two-sided 95 %
BINS = (0.0, 0.05, 0.2, 0.5, 0.8, 0.9, 0.97, 1.0)
FEWEST = 12  # runs: a smaller group is not listed by itself
HEAD = """# How right is it?

Made by `wheeltapper lab fit`. Every run here was judged by tables from which its whole family (of the worlds and wards), or the program
that made it (of the folders of strangers), had been left out. Intervals are 95 % (Wilson). "Called ill" is at {ill:g} and
above, "called sound" at {sound:g} and below; what `diagnose` adds to that (a certain sign, a proof, a score at its trivial level) is not in
these figures. The checks of programs were written while some of these runs were looked at: see research/scores.md for readings at first sight.
"""


def share(count: int, n: int) -> str:
    """A share with its interval.

    >>> share(9, 10)
    '90 % (60 to 98)'
    """
    if n == 0:
        return "–"
    p, z2 = count / n, Z * Z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    reach = Z * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return f"{100 * p:.0f} % ({100 * max(0.0, middle - reach):.0f} to {100 * min(1.0, middle + reach):.0f})"


def area(ill: Sequence[float], well: Sequence[float]) -> float:
    """The probability that a broken run is held for worse than a healthy one."""
    a, b = np.asarray(ill)[:, None], np.asarray(well)[None, :]
    return float(np.mean((a > b) + 0.5 * (a == b))) if a.size and b.size else math.nan


def _row(name: str, judged: Sequence[Judged], held: Tables) -> str:
    lines = Lines()
    broken = [j for j in judged if j.run.ill]
    ill, well = [p_ill(held, j) for j in broken], [p_ill(held, j) for j in judged if not j.run.ill]
    first = sum(j.causes[:1] != () and j.causes[0] in (j.run.cause, *j.run.also) for j in broken)
    three = sum(any(c in (j.run.cause, *j.run.also) for c in j.causes[:3]) for j in broken)
    no_alarm = sum(p > max(well, default=0.0) for p in ill)
    cells = (
        name, str(len(ill)), share(sum(p >= lines.ill for p in ill), len(ill)), f"{sum(p >= lines.ill for p in well)} of {len(well)}",
        f"{area(ill, well):.3f}", share(no_alarm, len(ill)), str(sum(p <= lines.sound for p in ill)), share(sum(p <= lines.sound for p in well), len(well)),
        share(first, len(ill)), share(three, len(ill)),
    )  # fmt: skip
    return f"| {' | '.join(cells)} |"


TABLE = (
    "| set | broken | called ill | alarms | area | found with no alarm | called sound though broken | healthy called sound "
    "| true cause first | among three |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |"
)


def _groups(judged: Sequence[Judged], by: Callable[[Judged], str], held: Tables) -> Iterator[str]:
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(by(one), []).append(one)
    for name, found in sorted(groups.items()):
        if len(found) >= FEWEST and len({j.run.ill for j in found}) == 2:
            yield _row(name, found, held)


def _reliability(judged: Sequence[Judged], held: Tables) -> Iterator[str]:
    """Said against seen, at the base rate of the tables: healthy and broken runs count as they would among people's runs."""
    p = np.asarray([p_ill(held, j) for j in judged])
    ill = np.asarray([j.run.ill for j in judged])
    worth = np.where(ill, held.base_rate / ill.mean(), (1 - held.base_rate) / (1 - ill.mean()))
    for low, high in pairwise(BINS):
        here = (p >= low) & ((p < high) | (high == 1.0))
        if here.any():
            said, seen = float(np.average(p[here], weights=worth[here])), float(np.average(ill[here], weights=worth[here]))
            yield f"| {low:g} to {high:g} | {int(here.sum())} | {100 * said:.0f} % | {100 * seen:.0f} % |"


def page(held: Tables, judged: Sequence[Judged]) -> str:
    """The page, as Markdown."""
    lines = Lines()
    parts = [HEAD.format(ill=lines.ill, sound=lines.sound), TABLE, _row("all", judged, held)]
    parts += ["", "## By family", "", TABLE, *_groups(judged, lambda j: j.run.family.partition(":")[0], held)]
    parts += ["", "## By log format", "", TABLE, *_groups(judged, lambda j: j.run.format, held)]
    parts += ["", "## Reliability", "", f"At a base rate of {held.base_rate:g} broken runs.", ""]
    parts += ["| said | runs | mean of what was said | broken |", "| --- | --- | --- | --- |", *_reliability(judged, held)]
    return "\n".join(parts) + "\n"
