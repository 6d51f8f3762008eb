"""Diagnoses and runs as strict JSON for programs. The shapes are in schema/*.json and carry a version.

JSON has no NaN. Written as null it comes back as "no value", and a diverged run looks like a short one; so a
number that is not finite is one of the strings "NaN", "Infinity", "-Infinity" (design/001-nan.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec
import numpy as np

from wheeltapper.audit.model import AuditReport
from wheeltapper.finding import Finding, Place, Remedy, Unknown
from wheeltapper.judge.compare import Comparison
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis, RankedCause
from wheeltapper.judge.schedule import Schedule
from wheeltapper.prognosis.forecast import Forecast
from wheeltapper.report.pages import pages
from wheeltapper.run.model import Run, Series
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.simulate.plan import Plan

# Raised by one in its first part when a field goes or changes its meaning; in its second when one is added.
VERSION = "2.1"
DIAGNOSIS = "wheeltapper/diagnosis"
SHOW = "wheeltapper/show"
COMPARE = "wheeltapper/compare"
SCHEDULE = "wheeltapper/schedule"
CHECK = "wheeltapper/check"


def dumps(value: Any, *, indent: int = 2) -> str:
    """Strict JSON. Everything is made plain first: the encoder itself would write NaN as null."""
    encoded = msgspec.json.encode(plain(value))
    return (msgspec.json.format(encoded, indent=indent) if indent else encoded).decode()


def number(value: float) -> float | str:
    """
    >>> [number(v) for v in (1.5, float("nan"), float("-inf"))]
    [1.5, 'NaN', '-Infinity']
    """
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def plain(value: Any) -> Any:
    """Only dicts with string keys, lists, strings, finite numbers, booleans and None."""
    if value is None or isinstance(value, bool | int):
        # An integer beyond 64 bits stays exact as text; a JSON reader would round it.
        return value if value is None or -(2**63) <= value < 2**64 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, float | np.floating):
        return number(float(value))
    if isinstance(value, np.integer | np.bool_):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.kind == "f":
            items: list[Any] = value.tolist()
            for index in np.flatnonzero(~np.isfinite(value)):
                items[index] = number(items[index])
            return items
        return [plain(item) for item in value.tolist()]
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return str(value)


def diagnoses_object(diagnoses: Iterable[Diagnosis]) -> dict[str, Any]:
    """The object that schema/diagnosis.json describes."""
    return {"schema": DIAGNOSIS, "version": VERSION, "runs": [_diagnosis(d) for d in diagnoses]}


def show_object(runs: Iterable[Run], *, values: bool = True) -> dict[str, Any]:
    """The object that schema/show.json describes."""
    return {"schema": SHOW, "version": VERSION, "runs": [_run(run, values) for run in runs]}


def comparison_object(c: Comparison) -> dict[str, Any]:
    """Two runs side by side; positions and words, not the points (`show --json` has those)."""
    return {
        "schema": COMPARE,
        "version": VERSION,
        "a": {"name": c.a.name, "root": c.a.root},
        "b": {"name": c.b.name, "root": c.b.root},
        "differences": [
            {
                "name": d.name,
                "kind": d.kind,
                "meaning": d.meaning,
                "a": d.a,
                "b": d.b,
                "unit_a": d.unit_a,
                "unit_b": d.unit_b,
                "place_a": None if d.place_a is None else _place(d.place_a),
                "place_b": None if d.place_b is None else _place(d.place_b),
            }
            for d in c.differences
        ],
        "same": c.same,
        "hidden": c.hidden,
        "curves": [
            {
                "name": p.name,
                "clock": p.clock,
                "equal_until": p.equal_until,
                "parts_at": p.parts_at,
                "rejoins": p.rejoins,
                "text": p.text,
            }
            for p in c.curves
        ],
        "notes": c.notes,
    }


def schedule_object(s: Schedule) -> dict[str, Any]:
    """The plan value by value; `unknown` instead of `plan` where it cannot be worked out."""
    out: dict[str, Any] = {"schema": SCHEDULE, "version": VERSION, "name": s.name, "plan": None, "unknown": None}
    if isinstance(s.plan, Unknown):
        out["unknown"] = {"why": s.plan.why, "needs": s.plan.needs}
    else:
        out["plan"] = _plan(s.plan)
    out["logged"] = None if s.logged is None else series_object(s.logged)
    out["match"] = None if s.match is None else msgspec.to_builtins(s.match)
    return out


def _plan(plan: Plan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "unit": plan.unit,
        "total": plan.total,
        "lr": plan.lr(),
        "momentum": None if plan.momentum is None else plan.momentum[0],
        "events": [{"kind": e.kind, "at": e.at, "text": e.text} for e in plan.events],
        "notes": plan.notes,
    }


def check_object(report: AuditReport) -> dict[str, Any]:
    """The object that schema/check.json describes."""
    titles = {page.id: page.title for page in pages() if page.kind == "check"}
    return {
        "schema": CHECK,
        "version": VERSION,
        "subject": report.subject,
        "dialect": report.dialect,
        "files": report.files,
        "table": [
            {"label": r.label, "value": r.value, "how": r.how, "place": None if r.place is None else _place(r.place)}
            for r in report.rows
        ],
        "findings": [{"title": titles.get(f.id), **_sign(f)} for f in report.findings],
        "plan": None if report.plan is None else _plan(report.plan),
        "notes": report.notes,
    }


def _diagnosis(d: Diagnosis) -> dict[str, Any]:
    best = d.best
    judged = None if best is None else d.run.series.get(best.metric)
    return {
        "name": d.run.name,
        "root": d.run.root,
        "formats": d.run.formats,
        "verdict": d.verdict,
        "p_ill": round(d.p_ill, 4),
        "trouble": d.trouble,
        "suspicion": next((c.id for c in d.causes if c.id != SOMETHING_ELSE), None),
        "headline": d.headline,
        "why": d.why,
        "todo": d.todo,
        "progress": {
            "state": d.progress.state,
            "at": d.progress.at,
            "total": d.progress.total,
            "clock": d.progress.clock,
            "text": d.progress.text,
        },
        "validity": [{"series": v.series, "valid": v.valid, "why": v.why, "baseline": v.baseline} for v in d.validity],
        "signs": [_sign(f) for f in d.findings],
        "observations": [
            {"id": s.id, "value": s.value, "state": s.state, "inside": s.inside, "text": s.text, "series": s.series}
            for s in d.seen
            if s.value is not None
        ],
        "clear": [{"id": name, "why": answer.why} for name, answer in d.clears],
        "unknown": [{"id": name, "why": answer.why, "needs": answer.needs} for name, answer in d.unknowns],
        "causes": [_cause(c) for c in d.causes],
        "remedies": [{"cause": c.id, **_remedy(r)} for c in d.causes for r in c.remedies],
        "best_checkpoint": None
        if best is None or best.nothing
        else {
            "path": best.path,
            "step": best.step,
            "clock": judged.clock if judged else "step",
            "metric": best.metric,
            "value": best.value,
            "why": best.why,
            "exists": best.exists,
        },
        "missing_evidence": [{"what": m.what, "why": m.why, "decides": m.decides, "bits": m.bits} for m in d.missing],
        "ruled_out": [{"id": r.id, "title": r.title, "why": r.why} for r in d.ruled_out],
        "expected": [{"id": e.id, "title": e.title, "why": e.why} for e in d.expected],
        "prognosis": _prognosis(d.prognosis),
        "notes": [*d.notes, *(f"{Place(file=n.file, line=n.line)}: {n.text}" for n in d.run.notes)],
    }


def _sign(f: Finding) -> dict[str, Any]:
    return {
        "id": f.id,
        "series": f.series,
        "clock": f.clock,
        "onset": f.onset,
        "end": f.end,
        "onset_epoch": f.onset_epoch,
        "severity": f.severity,
        "grade": f.grade,
        "p": f.p,
        "summary": f.summary,
        "numbers": f.numbers,
        "places": [_place(p) for p in f.places],
    }


def _cause(c: RankedCause) -> dict[str, Any]:
    return {
        "id": c.id,
        "title": c.title,
        "probability": c.probability,
        "grade": c.grade,
        "onset": c.onset,
        "explains": c.explains,
        "summary": c.summary,
        "evidence": [
            {"bits": e.bits, "text": e.text, "group": e.group, "places": [_place(p) for p in e.places]}
            for e in c.evidence
        ],
        "remedies": [_remedy(r) for r in c.remedies],
        "trial": c.trial,
    }


def _remedy(r: Remedy) -> dict[str, Any]:
    return {
        "text": r.text,
        "safety": r.safety,
        "predicts": r.predicts,
        "edits": [{"knob": e.knob, "old": e.old, "new": e.new, "why": e.why} for e in r.edits],
    }


def _place(p: Place) -> dict[str, Any]:
    return {"file": p.file, "line": p.line, "column": p.column, "series": p.series, "at": p.at}


def _prognosis(prognosis: object | None) -> Any:
    if isinstance(prognosis, Unknown):
        return {"why": prognosis.why, "needs": prognosis.needs}
    return asdict(prognosis) if isinstance(prognosis, Forecast) else None


def _run(run: Run, values: bool) -> dict[str, Any]:
    return {
        "name": run.name,
        "root": run.root,
        "formats": run.formats,
        "series": [series_object(s, values) for s in run.series.values()],
        "dead_branches": [series_object(s, values) for branch in run.dead.values() for s in branch],
        "facts": {
            name: {"value": fact.value, "source": fact.source, "derived": fact.derived}
            for name, fact in run.facts.items()
        },
        "config": [_config(tree) for tree in run.configs],
        "checkpoints": [
            {
                "path": c.path,
                "step": c.step,
                "epoch": c.epoch,
                "kinds": c.kinds,
                "size": c.size,
                "exists": c.exists,
                "metric": None if c.metric is None else {"name": c.metric[0], "value": c.metric[1]},
                "tensors": len(c.tensors),
                "note": c.note,
                "values": c.values,
            }
            for c in run.checkpoints
        ],
        "events": [
            {
                "kind": e.kind,
                "text": e.text,
                "file": e.file,
                "line": e.line,
                "at": e.at,
                "clock": e.clock,
                "count": e.count,
            }
            for e in run.events
        ],
        "segments": [
            {
                "index": s.index,
                "kind": s.kind,
                "clock": s.clock,
                "start": s.start,
                "end": s.end,
                "file": s.file,
                "line": s.line,
                "why": s.why,
                "dead_from": s.dead_from,
            }
            for s in run.segments
            if not s.beside
        ],
        "notes": [{"level": n.level, "text": n.text, "file": n.file, "line": n.line} for n in run.notes],
        "files": run.files,
        "scripts": run.scripts,
    }


def series_object(s: Series, values: bool = True) -> dict[str, Any]:
    good = s.values[s.finite]
    out: dict[str, Any] = {
        "name": s.name,
        "raw": s.raw,
        "quantity": s.quantity,
        "split": s.split,
        "part": s.part,
        "unit": s.unit,
        "better": s.better,
        "clock": s.clock,
        "window": s.window,
        "rank": s.rank,
        "n": len(s),
        "n_not_finite": len(s) - int(good.size),
        "first": float(s.values[0]) if len(s) else None,
        "last": float(s.values[-1]) if len(s) else None,
        "min": float(good.min()) if good.size else None,
        "max": float(good.max()) if good.size else None,
        "files": s.files,
    }
    if values:
        out["at"] = s.at
        out["values"] = s.values
        out["clocks"] = dict(s.clocks)
    return out


def _config(tree: ConfigTree) -> dict[str, Any]:
    leaves: Sequence[Any] = tree.leaves
    return {
        "file": tree.file,
        "format": tree.format,
        "kind": tree.kind,
        "problems": tree.problems,
        "leaves": [
            {
                "key": leaf.dotted,
                "value": leaf.value,
                "raw": leaf.raw,
                "line": leaf.line,
                "column": leaf.column,
                "note": leaf.note,
            }
            for leaf in leaves
        ],
    }
