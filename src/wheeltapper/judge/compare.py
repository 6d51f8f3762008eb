"""Two runs side by side: the settings that differ by meaning, and the first position where the curves part."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from wheeltapper.finding import Place
from wheeltapper.reading.record import ClockName, Floats
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.knobs import KNOBS, Knobs, KnobValue, read_knobs
from wheeltapper.settings.tree import Leaf
from wheeltapper.study.statistics import noise_of

# Keys that differ between any two runs and explain nothing: names, folders, times, hosts, ids.
NOISE = re.compile(
    r"(^|[._])(exp(eriment)?(_?(name|id|dir))?|run_?(name|id|dir)|job_?(name|id)|project(_?(name|dir))?|entity|user(name)?|"
    r"uuid|date|time(stamp)?|started(_at)?|created(_at)?|finished(_at)?|log_?(dir|file|path|name)|logs?|logger|logging_dir|"
    r"out(put)?(_?(dir|path|folder|name))?|save_?(dir|path|to)|work_?dir|ckpt_?(dir|path)|checkpoint_?dir|cache_?dir|"
    r"tensorboard(_dir)?|tb_dir|wandb(_\w+)?|tags?|notes?|comment|description|host(name)?|ip|port|pid|(local_|node_)?rank|"
    r"master_(addr|port)|device_ids?|exit_code|progress|config(_(file|path))?|path|root|dir)$",
    re.IGNORECASE,
)
# About the machine, not the model: shown after the rest.
MACHINE = {"duration", "throughput", "memory", "total_flos"}
FALSE_ALARMS = 0.05  # chance that two equal runs are said to part, over the whole curve
SETTLED = 0.1  # the last tenth says whether curves that parted have come together again

DifferenceKind = Literal["knob", "key", "environment"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting, as each run has it. None: that run does not say."""

    name: str
    kind: DifferenceKind
    a: Any
    b: Any
    meaning: str = ""
    unit_a: str | None = None
    unit_b: str | None = None
    place_a: Place | None = None
    place_b: Place | None = None


@dataclass(frozen=True, slots=True)
class CurvePair:
    """One series of both runs on a common clock."""

    name: str
    a: Series
    b: Series
    clock: ClockName
    equal_until: float | None  # identical to the last digit up to here; None: different from the start
    parts_at: float | None  # None: never by more than noise
    rejoins: bool
    text: str


@dataclass(frozen=True, slots=True)
class Comparison:
    a: Run
    b: Run
    differences: tuple[Difference, ...]
    same: int  # settings that both runs state and that agree
    hidden: int  # differing keys left out as noise
    curves: tuple[CurvePair, ...]
    notes: tuple[str, ...] = ()


def compare_runs(a: Run, b: Run) -> Comparison:
    knobs_a, knobs_b = knobs_of(a), knobs_of(b)
    bare = [run.name for run in (a, b) if not run.configs]
    # What a run without a configuration does not say is no difference.
    differences, same = ([], 0) if bare else _knob_differences(knobs_a, knobs_b)
    keys, same_keys, hidden = ([], 0, 0) if bare else _key_differences(a, b, knobs_a, knobs_b)
    facts, hidden_facts = _fact_differences(a, b)
    curves = tuple(pair for name in a.series if (pair := _pair(name, a, b)) is not None)
    order = sorted(
        curves,
        key=lambda p: (p.a.quantity in MACHINE, p.parts_at is None, p.a.quantity is None, p.a.part is not None),
    )
    notes = []
    if bare:
        notes.append(f"no configuration was found for {' and '.join(bare)}: settings cannot be compared")
    return Comparison(
        a, b, (*differences, *keys, *facts), same + same_keys, hidden + hidden_facts, tuple(order), tuple(notes)
    )


def knobs_of(run: Run) -> Knobs:
    return read_knobs(run.configs, run_formats=run.formats)


def equal_values(a: Any, b: Any) -> bool:
    """Equal by value, not by spelling.

    >>> equal_values(1e-4, 0.0001), equal_values([1, 2], (1.0, 2.0)), equal_values("Adam", "adam")
    (True, True, True)
    """
    if isinstance(a, bool) or isinstance(b, bool):
        return isinstance(a, bool) and isinstance(b, bool) and a == b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=1e-9) or (a != a and b != b)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(equal_values(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, str) and isinstance(b, str):
        return a.strip().lower() == b.strip().lower()
    return bool(a == b)


def _knob_differences(a: Knobs, b: Knobs) -> tuple[list[Difference], int]:
    out, same = [], 0
    for ident in KNOBS:
        mine, theirs = a.get(ident), b.get(ident)
        if mine is None and theirs is None:
            continue
        if mine is not None and theirs is not None and _same_knob(mine, theirs):
            same += 1
            continue
        # A default against nothing is not a difference: the other framework merely has no such default.
        known = [v for v in (mine, theirs) if v is not None]
        if len(known) == 1 and known[0].default:
            continue
        out.append(
            Difference(
                ident,
                "knob",
                None if mine is None else mine.value,
                None if theirs is None else theirs.value,
                KNOBS[ident].meaning,
                None if mine is None else mine.unit,
                None if theirs is None else theirs.unit,
                a.place(ident) if mine is not None and mine.leaf else None,
                b.place(ident) if theirs is not None and theirs.leaf else None,
            )
        )
    return out, same


def _same_knob(a: KnobValue, b: KnobValue) -> bool:
    return equal_values(a.value, b.value) and a.unit == b.unit


def _key_differences(a: Run, b: Run, knobs_a: Knobs, knobs_b: Knobs) -> tuple[list[Difference], int, int]:
    """Keys that no knob covers. Only between two files of one dialect: elsewhere spelling is all that differs."""
    if knobs_a.dialect.NAME != knobs_b.dialect.NAME:
        return [], 0, 0
    mine, theirs = _leaves(a), _leaves(b)
    leaves = [v.leaf for knobs in (knobs_a, knobs_b) for v in knobs.values() if v.leaf is not None]
    told = {leaf.dotted for leaf in leaves}
    # A knob that is a list names its first item; the knob tells of the others too.
    lists = tuple(leaf.dotted.rpartition(".")[0] + "." for leaf in leaves if isinstance(leaf.path[-1], int))
    out, same, hidden = [], 0, 0
    for key in dict.fromkeys([*mine, *theirs]):
        x, y = mine.get(key), theirs.get(key)
        if key in told or (lists and key.startswith(lists)):
            continue
        if x is not None and y is not None and equal_values(x.value, y.value):
            same += 1
        elif NOISE.search(key) or key == "name":
            hidden += 1
        else:
            out.append(
                Difference(
                    key,
                    "key",
                    None if x is None else x.value,
                    None if y is None else y.value,
                    place_a=None if x is None else _place(x),
                    place_b=None if y is None else _place(y),
                )
            )
    return out, same, hidden


def _leaves(run: Run) -> dict[str, Leaf]:
    return {leaf.dotted: leaf for tree in run.configs for leaf in tree}


def _place(leaf: Leaf) -> Place:
    return Place(file=leaf.file, line=leaf.line, column=leaf.column)


def _fact_differences(a: Run, b: Run) -> tuple[list[Difference], int]:
    out, hidden = [], 0
    mine, theirs = _flat(a), _flat(b)
    for name in dict.fromkeys([*mine, *theirs]):
        if name not in mine or name not in theirs or equal_values(mine[name], theirs[name]):
            continue
        if NOISE.search(name):
            hidden += 1
        else:
            out.append(Difference(name, "environment", mine[name], theirs[name]))
    return out, hidden


def _flat(run: Run) -> dict[str, Any]:
    """Facts by name; a fact that is a table (the environment) gives one entry a line."""
    out: dict[str, Any] = {}
    for name, fact in run.facts.items():
        if isinstance(fact.value, Mapping):
            out |= {f"{name}.{key}": value for key, value in fact.value.items()}
        else:
            out[name] = fact.value
    return out


def _pair(name: str, run_a: Run, run_b: Run) -> CurvePair | None:
    a, b = run_a.series[name], run_b.series.get(name)
    if b is None or not len(a) or not len(b):
        return None
    clock = next((c for c in (a.clock, b.clock) if a.on(c) is not None and b.on(c) is not None), None)
    if clock is None:
        return None
    at_a, at_b = a.on(clock), b.on(clock)
    assert at_a is not None
    assert at_b is not None
    x, ya, yb = common(at_a, a.values, at_b, b.values)
    equal_until, parts_at, rejoins = where_apart(x, ya, yb, log=a.better != "up")
    return CurvePair(
        name, a, b, clock, equal_until, parts_at, rejoins, _words(clock, x, equal_until, parts_at, rejoins)
    )


def common(at_a: Floats, a: Floats, at_b: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Both curves on one grid: shared positions where there are enough, else the coarser one's positions with
    the other read between its points."""
    shared, ia, ib = np.intersect1d(at_a, at_b, return_indices=True)
    if len(shared) >= 0.5 * min(len(at_a), len(at_b)):
        return shared, a[ia], b[ib]
    low, high = max(np.nanmin(at_a), np.nanmin(at_b)), min(np.nanmax(at_a), np.nanmax(at_b))
    coarse = at_a if len(at_a) <= len(at_b) else at_b
    grid = np.unique(coarse[(coarse >= low) & (coarse <= high)])
    return grid, _read(grid, at_a, a), _read(grid, at_b, b)


def _read(grid: Floats, at: Floats, values: Floats) -> Floats:
    order = np.argsort(at, kind="stable")
    return np.interp(grid, at[order], values[order])


def where_apart(x: Floats, a: Floats, b: Floats, *, log: bool) -> tuple[float | None, float | None, bool]:
    """(identical up to, parts at, comes together again).

    A two-sided CUSUM of the difference in units of both curves' noise, widened for autocorrelation; its
    threshold follows from the number of looks so that equal runs are told apart in 5 % of cases (KNOWLEDGE
    ST-02, ST-04). The position is where the excursion began, not where it crossed the threshold.
    """
    if not len(x):
        return None, None, False
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    if same.all():
        return float(x[-1]), None, False
    first = int(np.argmin(same))
    equal_until = float(x[first - 1]) if first else None
    broken = np.flatnonzero(np.isfinite(a) != np.isfinite(b))
    ends = int(broken[0]) if broken.size else len(x)  # one is NaN where the other is a number: apart, surely
    good = np.isfinite(a) & np.isfinite(b)
    if log and good.any() and min(a[good].min(), b[good].min()) > 0:
        with np.errstate(invalid="ignore", divide="ignore"):
            a, b = np.log(a), np.log(b)
    scale = _noise_scale(a[good], b[good])
    index = np.flatnonzero(good[:ends])
    spot = _cusum((a[index] - b[index]) / scale) if scale > 0 else (int(np.argmin(same[index])) if index.size else None)
    onset = int(index[spot]) if spot is not None and index.size and not same[index].all() else None
    if onset is None:
        return equal_until, float(x[ends]) if broken.size else None, False
    tail = index[-max(1, int(SETTLED * len(index))) :]
    apart = float(np.abs(np.median(a[tail] - b[tail])))
    rejoins = not broken.size and apart < scale / math.sqrt(len(tail)) * 2
    return equal_until, float(x[onset]), rejoins


def _noise_scale(a: Floats, b: Floats) -> float:
    total = 0.0
    for values in (a, b):
        noise = noise_of(values)
        total += noise.sigma**2 * (1 + noise.rho) / (1 - noise.rho)
    return math.sqrt(total)


def _cusum(z: Floats) -> int | None:
    """Index where the first significant excursion began, or None.

    Siegmund's approximation for an allowance of 0.5: the mean run to a false alarm is about 2·exp(h + 1.17)
    looks, so two sides over n looks alarm falsely with probability FALSE_ALARMS at h = ln(n / FALSE_ALARMS) − 1.17.
    """
    threshold = math.log(max(len(z), 2) / FALSE_ALARMS) - 1.17
    best: int | None = None
    for side in (z, -z):
        level, start = 0.0, 0
        for i, value in enumerate(side.tolist()):
            if level == 0.0:
                start = i
            level = max(0.0, level + value - 0.5)
            if level > threshold:
                best = start if best is None else min(best, start)
                break
    return best


def _words(clock: str, x: Floats, equal_until: float | None, parts_at: float | None, rejoins: bool) -> str:
    def at(value: float) -> str:
        return f"{clock.replace('_', '-')} {value:,.10g}"

    if not len(x):
        return "no common stretch to compare"
    if equal_until is not None and equal_until == x[-1]:
        return "identical"
    start = f"identical up to {at(equal_until)}; " if equal_until is not None else ""
    if parts_at is None:
        return f"{start}the same within noise up to {at(float(x[-1]))}"
    again = ", and come together again by the end" if rejoins else ""
    return f"{start}part at {at(parts_at)}{again}"
