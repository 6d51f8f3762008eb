"""Every question of the server, answered in plain Python: what tools call, and what tests ask without a client."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from wheeltapper import api
from wheeltapper.audit import AuditReport, audit_run
from wheeltapper.errors import InputError
from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.mcp.roots import Roots, Stamp, stamp_of, walk
from wheeltapper.mcp.short import fitted, more
from wheeltapper.reading import head_of, ranked
from wheeltapper.report.brief import brief, kept
from wheeltapper.report.close import close_matches
from wheeltapper.report.text import clean
from wheeltapper.review.record import Record
from wheeltapper.run.folders import home_of
from wheeltapper.run.gather import SKIP_ENDINGS
from wheeltapper.run.model import Series

KEPT_RUNS = 16  # diagnoses that are remembered
SURE = 0.3  # how sure a reader must be that a file is a log, to list its folder as a run
MOST_SNIFFED = 3000  # files that are looked into for one list
MOST_POINTS = 120


@dataclass(frozen=True)
class Known:
    """A run that was read, and when."""

    diagnosis: Diagnosis
    audit: AuditReport
    stamp: Stamp
    changed: bool = False  # while it was read

    @property
    def record(self) -> Record:
        return Record(self.diagnosis, self.audit)


@dataclass
class Desk:
    """Answers about the runs in the allowed folders."""

    roots: Roots
    allow_write: bool = False
    _known: OrderedDict[tuple[str, str | None], Known] = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    # -- runs ------------------------------------------------------------------------------------------

    def known(self, run: str) -> Known:
        """A run by its handle, `folder` or `folder#name`; read again when anything in it has changed."""
        name, _, which = run.partition("#")
        path = self.roots.find(name)
        stamp = stamp_of(path)
        key = (str(path), which or None)
        with self._lock:
            held = self._known.get(key)
        if held is not None and held.stamp == stamp and not held.changed:
            return held
        try:
            one = api.one_run(path, which or None)
        except InputError as error:
            raise InputError(
                error.what, where=error.where, do=(error.do or "").replace("with --run NAME", f"as {name}#NAME")
            ) from error
        report = audit_run(one)
        fresh = Known(api.judge(one, audit=report.findings), report, stamp, stamp_of(path) != stamp)
        with self._lock:
            self._known[key] = fresh
            self._known.move_to_end(key)
            while len(self._known) > KEPT_RUNS:
                self._known.popitem(last=False)
        return fresh

    def _told(self, run: str, known: Known, answer: dict[str, Any]) -> dict[str, Any]:
        if known.changed:
            answer["changed"] = "the run was written to while it was read: ask again for its newest state"
        return {"run": run, **answer}

    def list_runs(self, folder: str = "", offset: int = 0, limit: int = 25) -> dict[str, Any]:
        """Folders that hold a log, in name order."""
        top = self.roots.find(folder) if folder else None
        found: dict[str, int] = {}
        for root in [top] if top is not None else self.roots.folders:
            self._look_through(root, found)
        names = sorted(found)
        shown = names[offset : offset + max(1, min(limit, 100))]
        answer: dict[str, Any] = {"total": len(names), "runs": [{"run": name, "bytes": found[name]} for name in shown]}
        if offset + len(shown) < len(names):
            answer["more"] = [more("list_runs", folder=folder, offset=offset + len(shown), limit=limit)]
        return fitted(answer, ("runs",))

    def _look_through(self, root: Path, found: dict[str, int]) -> None:
        looked = 0
        for entry in sorted(walk(root), key=lambda e: e.path):
            path = Path(entry.path)
            if (
                not entry.is_file(follow_symlinks=False)
                or path.suffix.lower() in SKIP_ENDINGS
                or looked >= MOST_SNIFFED
            ):
                continue
            looked += 1
            try:
                sure = max((claim for claim, _ in ranked(head_of(path))), default=0.0)
            except (OSError, ValueError):
                continue
            if sure >= SURE:
                home = self.roots.name_of(home_of(path.parent, root)) or "."
                found[home] = found.get(home, 0) + entry.stat().st_size

    def show(self, run: str) -> dict[str, Any]:
        known = self.known(run)
        r = known.diagnosis.run
        answer = {
            "name": clean(r.name, 80),
            "formats": list(r.formats),
            "progress": known.diagnosis.progress.text,
            "curves": [_curve_line(s) for s in r.series.values() if len(s)],
            "settings": len([leaf for tree in r.configs for leaf in tree.leaves]),
            "configs": [self.roots.name_of(Path(tree.file).resolve()) for tree in r.configs][:5],
            "scripts": [self.roots.name_of(Path(file).resolve()) for file in r.scripts][:5],
            "checkpoints": [{"path": c.path, "step": c.step, "exists": c.exists} for c in r.checkpoints][-3:],
            "events": [{"kind": e.kind, "text": clean(e.text, 120), "at": e.at} for e in r.events][:4],
            "notes": [clean(n.text, 160) for n in r.notes][:3],
            "more": [more("curve", run=run, series="NAME"), more("settings", run=run), more("diagnose", run=run)],
        }
        return self._told(run, known, fitted(answer, ("notes", "events", "checkpoints", "curves")))

    def diagnose(self, run: str) -> dict[str, Any]:
        known = self.known(run)
        d = known.diagnosis
        handles = [more("evidence", run=run, id=c.id) for c in d.causes[:2] if c.id != SOMETHING_ELSE]
        handles += [more("evidence", run=run, id=f.id) for f in d.findings[:2]]
        answer = {
            **brief(d),
            "why": [clean(line, 300) for line in d.why],
            "unreliable_scores": [
                {"series": v.series, "why": clean(v.why, 200)} for v in d.validity if v.valid == "no"
            ],
            "ruled_out": [{"id": r.id, "why": clean(r.why, 160)} for r in d.ruled_out[:6]],
            "normal_here": [e.id for e in d.expected],
            "more": handles,
        }
        answer.pop("root", None)
        return self._told(run, known, fitted(answer, ("ruled_out", "signs", "unreliable_scores", "normal_here")))

    def evidence(self, run: str, id: str) -> dict[str, Any]:
        """All that is known about one cause, sign, observation, check or refused rule in this run."""
        known = self.known(run)
        d = known.diagnosis
        answer: dict[str, Any] = {"id": id}
        cause = next((c for c in d.causes if c.id == id), None)
        if cause is not None:
            answer["cause"] = {
                "title": cause.title,
                "p": round(cause.probability, 3),
                "grade": cause.grade,
                "trial": cause.trial,
            }
            answer["for"] = [_weighed(e) for e in cause.evidence if e.bits > 0]
            answer["against"] = [_weighed(e) for e in cause.evidence if e.bits < 0]
            answer["remedies"] = [{"text": r.text, "safety": r.safety, "then": r.predicts} for r in cause.remedies]
        findings = [f for f in (*d.findings, *known.audit.findings) if f.id == id]
        if findings:
            unique = {f.summary: f for f in findings}.values()
            answer["findings"] = [
                {"summary": clean(f.summary, 400), "severity": f.severity, "grade": f.grade, "series": f.series, "clock": f.clock,
                 "onset": f.onset, "end": f.end, "numbers": dict(list(f.numbers.items())[:8]), "places": [self.place(str(p)) for p in f.places[:4]]}
                for f in unique
            ]  # fmt: skip
        seen = next((s for s in d.seen if s.id == id and s.value is not None), None)
        if seen is not None:
            answer["observation"] = {"value": seen.value, "inside_healthy_band": seen.inside, "text": seen.text}
        refused = [r.why for r in d.ruled_out if r.id == id]
        if refused:
            answer["ruled_out"] = [clean(why, 500) for why in refused]
        if len(answer) == 1:
            self._unknown_id(id, d)
        answer["more"] = [more("explain", id=id)]
        return self._told(run, known, fitted(answer, ("against", "for", "findings", "remedies")))

    def _unknown_id(self, id: str, d: Diagnosis) -> None:
        ids = list(
            dict.fromkeys([*(c.id for c in d.causes), *(f.id for f in d.findings), *(r.id for r in d.ruled_out)])
        )
        near = close_matches(id, ids) or ids[:8]
        raise InputError(
            f"this run shows nothing called {id[:80]!r}.", do=f"It has: {', '.join(near) or 'no cause and no sign'}."
        )

    def place(self, place: str) -> str:
        """A file:line as it is shown: from its root."""
        for folder in self.roots.folders:
            place = place.replace(f"{folder}/", "")
        return place

    def curve(
        self, run: str, series: str, points: int = 40, since: float | None = None, until: float | None = None
    ) -> dict[str, Any]:
        """A curve with few points: of each stretch its lowest and highest, so that no spike is lost."""
        known = self.known(run)
        found = known.diagnosis.run.series_named(series)
        if found is None:
            names = list(known.diagnosis.run.series)
            near = close_matches(series, names) or names[:12]
            raise InputError(f"no curve is named {series[:80]!r}.", do=f"There are: {', '.join(near)}.")
        mask = np.ones(len(found), dtype=bool)
        if since is not None:
            mask &= found.at >= since
        if until is not None:
            mask &= found.at <= until
        part = found.where(mask)
        index = kept(part.values, max(4, min(points, MOST_POINTS)))
        answer = {
            **_curve_line(found),
            "raw": found.raw,
            "unit": found.unit,
            "better": found.better,
            "n_here": len(part),
            "points": [[_digits(float(part.at[i])), _digits(float(part.values[i]))] for i in index],
            "place": self.place(str(found.place(0))) if len(found) else None,
        }
        return self._told(run, known, fitted(answer, ("points",)))


def _weighed(e: Any) -> dict[str, Any]:
    return {
        "bits": round(e.bits, 1),
        "text": clean(e.text, 240),
        "places": [str(p).rsplit("/", 1)[-1] for p in e.places[:2]],
    }


def _digits(value: float) -> float | str:
    """Five significant digits; what is not finite, as text."""
    return (
        float(f"{value:.5g}")
        if np.isfinite(value)
        else "NaN"
        if np.isnan(value)
        else "Infinity"
        if value > 0
        else "-Infinity"
    )


def _curve_line(s: Series) -> dict[str, Any]:
    good = np.flatnonzero(s.finite)
    out: dict[str, Any] = {"name": s.name, "clock": s.clock, "n": len(s), "not_finite": len(s) - len(good)}
    if len(good):
        low, high = good[s.values[good].argmin()], good[s.values[good].argmax()]
        out |= {
            "first": _digits(float(s.values[good[0]])), "last": _digits(float(s.values[good[-1]])),
            "min": [_digits(float(s.at[low])), _digits(float(s.values[low]))], "max": [_digits(float(s.at[high])), _digits(float(s.values[high]))],
        }  # fmt: skip
    return out
