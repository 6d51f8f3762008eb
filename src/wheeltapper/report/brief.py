"""Short answers for machines: a diagnosis in 1.5 kB, a check in 50 kB, and only the fields that were asked for.

Sizes are kept by leaving out, never by cutting JSON: what is left out is counted, and the full answer is one option away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wheeltapper.errors import InputError
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.report.json_out import VERSION, dumps
from wheeltapper.report.text import clean

BRIEF = "wheeltapper/brief"
MOST_RUN = 1500  # bytes of one run
MOST_CHECK = 50_000  # bytes of a check
MOST_TICKS = 200  # values of a planned learning rate
# What goes first where a run is too long; verdict, headline and the first cause always stay.
_GIVES_WAY = ("missing", "observed", "signs", "best_checkpoint", "todo", "root", "causes")


def briefs_object(diagnoses: Iterable[Diagnosis]) -> dict[str, Any]:
    """The object that schema/brief.json describes."""
    return {"schema": BRIEF, "version": VERSION, "runs": [brief(d) for d in diagnoses]}


def brief(d: Diagnosis) -> dict[str, Any]:
    """One run in at most MOST_RUN bytes."""
    best = d.best if d.best is not None and not d.best.nothing else None
    out: dict[str, Any] = {
        "name": clean(d.run.name, 80),
        "root": clean(d.run.root, 160),
        "verdict": d.verdict,
        "p_ill": round(d.p_ill, 3),
        "trouble": d.trouble,
        "headline": clean(d.headline, 220),
        "progress": clean(d.progress.text, 80),
        "causes": [
            {"id": c.id, "p": round(c.probability, 3), "grade": c.grade, "evidence": clean(c.summary, 140)}
            for c in d.causes[:3]
            if c.id != SOMETHING_ELSE
        ],
        "signs": [
            {"id": f.id, "severity": f.severity, "series": f.series, "clock": f.clock, "onset": f.onset}
            for f in d.findings[:4]
        ],
        "best_checkpoint": None
        if best is None
        else {"step": best.step, "metric": best.metric, "value": best.value, "path": best.path, "exists": best.exists},
        "todo": [clean(line, 140) for line in d.todo[:2]],
        "missing": [clean(m.what, 80) for m in d.missing[:2]],
        "left_out": [],
    }
    return _within(out, MOST_RUN)


def size_of(value: Any) -> int:
    """Bytes as compact JSON."""
    return len(dumps(value, indent=0).encode())


def _within(out: dict[str, Any], most: int) -> dict[str, Any]:
    """Lists are shortened from their end, field after field, until all of it fits; what went is named."""
    for name in _GIVES_WAY:
        while size_of(out) > most and out.get(name):
            if isinstance(out[name], list) and (len(out[name]) > 1 or name != "causes"):
                out[name] = out[name][:-1]
            elif name == "causes":
                break
            else:
                out[name] = None
            out["left_out"] = sorted({*out["left_out"], name})
    return out


def check_within(check: dict[str, Any], most: int = MOST_CHECK) -> dict[str, Any]:
    """The object of a check with the planned rate thinned, and fewer files, notes and findings where it is still too long."""
    out = dict(check)
    left = {"files": 0, "notes": 0, "findings": 0, "places": 0}
    if out["plan"] is not None:
        out["plan"] = _thinned_plan(out["plan"])
    out["findings"] = [_few_places(finding, left) for finding in out["findings"]]
    for name, least in (("files", 50), ("notes", 10), ("findings", 10), ("files", 0), ("notes", 0), ("findings", 1)):
        while size_of(out) > most - 200 and len(out[name]) > least:
            keep = max(least, len(out[name]) * 3 // 4)
            left[name] += len(out[name]) - keep
            out[name] = list(out[name])[:keep]
    return {**out, "left_out": left}


def _few_places(finding: dict[str, Any], left: dict[str, int]) -> dict[str, Any]:
    places = finding["places"]
    left["places"] += max(0, len(places) - 3)
    return {**finding, "places": places[:3]}


def _thinned_plan(plan: dict[str, Any]) -> dict[str, Any]:
    """The planned rate at so many ticks that its corners stay: `lr_at` says which."""
    lr = np.asarray(plan["lr"], dtype=np.float64)
    if len(lr) <= MOST_TICKS:
        return {**plan, "lr_at": None}
    at = kept(lr, MOST_TICKS)
    momentum = plan["momentum"]
    return {
        **plan,
        "lr": [float(f"{value:.5g}") for value in lr[at]],
        "momentum": None if momentum is None else [float(f"{value:.5g}") for value in np.asarray(momentum)[at]],
        "lr_at": at.tolist(),
    }


def kept(values: np.ndarray[Any, Any], most: int) -> np.ndarray[Any, Any]:
    """Indices that show a curve with few points: of every stretch its lowest and its highest, so that no spike is lost; and
    the first value that is not finite of each stretch.

    >>> kept(np.array([0.0, 0, 9, 0, 0, 0, 0, 0, -5, 0]), 6).tolist()
    [0, 2, 5, 8, 9]
    """
    n = len(values)
    if n <= most:
        return np.arange(n)
    chosen = {0, n - 1}
    for part in np.array_split(np.arange(n), max(1, (most - 2) // 2)):
        finite = part[np.isfinite(values[part])]
        if len(finite):
            chosen |= {int(finite[values[finite].argmin()]), int(finite[values[finite].argmax()])}
        if len(finite) < len(part):
            chosen.add(int(part[~np.isfinite(values[part])][0]))
    return np.array(sorted(chosen))


def only(value: dict[str, Any], fields: str, within: str | None = "runs") -> dict[str, Any]:
    """The object with these fields only, with commas between them and dots into lists and objects: "verdict,causes.id".
    `within`: the list whose items they are asked of; the head (schema, version) always stays.

    >>> only({"schema": "s", "version": "1", "runs": [{"a": 1, "b": [{"c": 2, "d": 3}]}]}, "b.c")
    {'schema': 's', 'version': '1', 'runs': [{'b': [{'c': 2}]}]}
    """
    wanted = [field.split(".") for field in fields.replace(" ", "").split(",") if field]
    head: dict[str, Any] = {key: value[key] for key in ("schema", "version") if key in value}
    items: Sequence[Any] = value[within] if within else [value]
    known = {key for item in items for key in item}
    for path in wanted:
        if items and path[0] not in known:
            raise InputError(f"there is no field {path[0]!r}.", do=f"There are: {', '.join(sorted(known))}.")
    if within:
        return {**head, within: [_picked(item, wanted) for item in items]}
    return {**head, **_picked(value, wanted)}


def _picked(value: Any, paths: Sequence[Sequence[str]]) -> Any:
    if isinstance(value, list | tuple):
        return [_picked(item, paths) for item in value]
    if not isinstance(value, Mapping):
        return value
    out: dict[str, Any] = {}
    for name in dict.fromkeys(path[0] for path in paths):
        if name in value:
            deeper = [path[1:] for path in paths if path[0] == name and len(path) > 1]
            whole = any(path == [name] for path in paths)
            out[name] = value[name] if whole or not deeper else _picked(value[name], deeper)
    return out


def error_object(kind: str, what: str, where: str | None = None, do: str | None = None) -> dict[str, Any]:
    """What went wrong, for a program: what, where, what to do."""
    return {
        "schema": "wheeltapper/error",
        "version": VERSION,
        "error": {"kind": kind, "what": what, "where": where, "do": do},
    }
