"""Questions about settings, plans, texts and pages: what the desk answers besides curves and causes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from wheeltapper import api
from wheeltapper.errors import InputError, RefusedEdit
from wheeltapper.finding import Edit, Unknown
from wheeltapper.judge.schedule import lay_out
from wheeltapper.mcp.desk import Desk
from wheeltapper.mcp.short import fitted, more
from wheeltapper.remedy.fix import Fix, make_fix
from wheeltapper.remedy.loads import edit_run, load_test
from wheeltapper.report.brief import kept
from wheeltapper.report.close import close_matches
from wheeltapper.report.pages import pages
from wheeltapper.report.review_out import answer_object
from wheeltapper.report.text import clean
from wheeltapper.review import review_claims, review_text
from wheeltapper.review.model import ClaimFile, Verdict
from wheeltapper.run.model import Run
from wheeltapper.settings.knobs import read_knobs
from wheeltapper.settings.parse import parse_text
from wheeltapper.settings.practice import IDS, counts, meaning_of, place_in_practice, spread_of
from wheeltapper.settings.tree import ConfigTree
from wheeltapper.settings.understand import guess_of
from wheeltapper.simulate.plan import Plan
from wheeltapper.simulate.plan_from_knobs import planned_lr

MOST_TEXT = 200_000  # letters of a text to review
MOST_EDITS = 50
PLAN_POINTS = 24
ANSWERED: tuple[Verdict, ...] = ("contradicted", "supported", "undecided", "not-in-record")


def settings(desk: Desk, run: str, like: str = "", offset: int = 0) -> dict[str, Any]:
    """What the run was started with, by key; `like` picks keys that hold these letters."""
    known = desk.known(run)
    record = known.record
    knobs = {v.leaf.dotted: v.id for v in record.knobs.values() if v.leaf is not None}
    rows = [
        {
            "key": leaf.dotted,
            "value": _short(leaf.value),
            "knob": knobs.get(leaf.dotted),
            "place": desk.place(f"{leaf.file}:{leaf.line}"),
        }
        for leaf in record.leaves
        if like.lower() in leaf.dotted.lower()
    ]
    idle = [{"id": f.id, "summary": clean(f.summary, 200)} for f in known.audit.findings if f.id == "option-never-used"]
    shown = rows[offset : offset + 40]
    answer: dict[str, Any] = {"run": run, "total": len(rows), "settings": shown, "without_effect": idle}
    out = fitted(answer, ("without_effect", "settings"))
    reached = offset + len(out["settings"])
    if reached < len(rows):
        out["more"] = [more("settings", run=run, like=like, offset=reached)]
    return out


def practice(setting: str, value: float | None = None) -> dict[str, Any]:
    """What public runs use for a setting, and where a value lies among them."""
    knob = setting if setting in IDS else guess_of(setting.rsplit(".", 1)[-1])
    if knob not in IDS:
        near = close_matches(setting, sorted(IDS))
        raise InputError(f"no setting is named {setting[:80]!r}.", do=f"Try: {', '.join(near or sorted(IDS)[:12])}.")
    assert knob is not None
    spread = spread_of(knob)
    answer: dict[str, Any] = {"setting": knob, "meaning": meaning_of(knob), "public_configurations": counts()[0]}
    if spread is None:
        return {**answer, "n": 0, "note": "too few public runs set it to say what is usual"}
    answer |= {"n": spread.n, "quantiles": {f"{q:g}": spread.quantile(q) for q in (0.05, 0.25, 0.5, 0.75, 0.95)}}
    if value is not None:
        rank = place_in_practice(knob, value)
        answer["rank"] = None if rank is None else rank.sentence(value)
    return answer


def check(desk: Desk, paths: Sequence[str], offset: int = 0) -> dict[str, Any]:
    """What a run of these configs and scripts will really do, and what is declared and is not so."""
    if not paths:
        raise InputError("no path is given.", do="Give configs, scripts or a folder, as list_runs shows folders.")
    report = api.check([desk.roots.find(path) for path in paths[:50]])
    findings = [
        {
            "id": f.id,
            "grade": f.grade,
            "severity": f.severity,
            "summary": clean(f.summary, 260),
            "places": [desk.place(str(p)) for p in f.places[:2]],
        }
        for f in report.findings[offset:]
    ]
    answer: dict[str, Any] = {
        "read_as": report.dialect,
        "really_does": [
            {"what": r.label, "value": clean(r.value, 80), "how": desk.place(clean(r.how, 120))} for r in report.rows
        ],
        "total_findings": len(report.findings),
        "findings": findings,
        "unread": [desk.place(name) for name in report.unread[:5]],
    }
    out = fitted(answer, ("findings", "really_does"))
    reached = offset + len(out["findings"])
    if reached < len(report.findings):
        out["more"] = [more("check", paths=list(paths), offset=reached)]
    return out


def schedule(desk: Desk, run: str) -> dict[str, Any]:
    """The learning rate that the settings plan, and how the logged one follows it."""
    known = desk.known(run)
    found = lay_out(known.diagnosis.run)
    answer: dict[str, Any] = {"run": run, **_plan(found.plan)}
    if isinstance(found.plan, Unknown) and known.audit.plan is not None:
        answer = {"run": run, **_plan(known.audit.plan)}
    if found.logged is not None:
        answer["logged"] = more("curve", run=run, series=found.logged.name)
    if found.match is not None:
        answer["match"] = msgspec.to_builtins(found.match)
    return fitted(answer, ("plan_points", "events", "notes"))


def _plan(plan: Plan | Unknown) -> dict[str, Any]:
    if isinstance(plan, Unknown):
        return {"plan": None, "unknown": plan.why, "needs": list(plan.needs)}
    lr = plan.lr()
    index = kept(lr, PLAN_POINTS)
    return {
        "plan": plan.name,
        "unit": plan.unit,
        "ticks": plan.n,
        "first": _digits(lr[0]),
        "peak": _digits(plan.peak),
        "last": _digits(lr[-1]),
        "plan_points": [[int(i), _digits(lr[i])] for i in index],
        "events": [{"kind": e.kind, "at": e.at, "text": e.text} for e in plan.events[:8]],
        "notes": [clean(note, 160) for note in plan.notes[:4]],
    }


def _digits(value: Any) -> float | None:
    return float(f"{float(value):.5g}") if np.isfinite(value) else None


def compare(desk: Desk, a: str, b: str) -> dict[str, Any]:
    """Settings that differ by meaning, and where the curves part."""
    first, second = desk.known(a), desk.known(b)
    c = api.compare(first.diagnosis.run, second.diagnosis.run)
    answer = {
        "a": a,
        "b": b,
        "verdicts": [first.diagnosis.verdict, second.diagnosis.verdict],
        "differences": [
            {"name": d.name, "meaning": d.meaning, "a": _short(d.a), "b": _short(d.b)} for d in c.differences
        ],
        "same": c.same if isinstance(c.same, int) else len(c.same),
        "curves": [
            {"name": p.name, "clock": p.clock, "parts_at": p.parts_at, "text": clean(p.text, 160)} for p in c.curves
        ],
        "notes": [clean(note, 160) for note in c.notes],
    }
    return fitted(answer, ("notes", "curves", "differences"))


def simulate(desk: Desk, run: str, edits: Mapping[str, Any]) -> dict[str, Any]:
    """What changes of settings would really do: the files as they would read, whether they load, the new plan."""
    if not edits or len(edits) > MOST_EDITS:
        raise InputError("give between 1 and 50 changes.", do='As in {"optimizer.lr": 0.001, "schedule.warmup": 500}.')
    known = desk.known(run)
    r = known.diagnosis.run
    wanted = [Edit(name, _now(known.record.value_of(name)), new) for name, new in edits.items()]
    unchanged = [e.knob for e in wanted if e.old is not None and e.old == e.new]
    try:
        edited = edit_run(r, [e for e in wanted if e.knob not in unchanged])
    except RefusedEdit as refused:
        raise InputError(
            refused.what, where=refused.where, do=refused.do or "Name settings as `settings` lists them."
        ) from refused
    tests = [load_test(one, r, loaders=False) for one in edited]
    after = _with(r, {one.file: one.after for one in edited})
    answer = {
        "run": run,
        "without_effect": unchanged,
        "changes": [{"key": c.key, "old": c.old, "new": c.new, "line": c.line} for one in edited for c in one.changes],
        "loads": [
            {"file": desk.place(t.file), "ok": t.ok, "failed": [clean(x.text, 200) for x in t.failed]} for t in tests
        ],
        "before": _ends(planned_lr(known.record.knobs, r.facts, trees=known.record.trees)),
        "after": _ends(planned_lr(read_knobs(after, run_formats=r.formats), r.facts, trees=after)),
        "diff": [clean(line, 160) for one in edited for line in one.diff().splitlines()],
        "note": "settings and the planned learning rate only: what the model then does, a run must show",
    }
    return fitted(answer, ("diff", "changes"))


def _now(found: tuple[Any, Any] | None) -> Any:
    return None if found is None else found[0]


def _with(run: Run, texts: Mapping[str, str]) -> list[ConfigTree]:
    return [
        parse_text(texts[t.file], t.file, t.format) if t.file in texts and t.text is not None else t
        for t in run.configs
    ]


def _ends(plan: Plan | Unknown) -> dict[str, Any]:
    told = _plan(plan)
    return {key: value for key, value in told.items() if key not in ("plan_points", "notes")}


def fix(desk: Desk, run: str, write_to: str | None = None) -> dict[str, Any]:
    """What to change, as edits and a plan. Nothing is written unless the server was started with --allow-write."""
    known = desk.known(run)
    found = make_fix(known.diagnosis)
    written: list[str] = []
    if write_to is not None:
        written = _write(desk, found, write_to)
    answer = {
        "run": run,
        "state": found.state,
        "headline": clean(found.headline, 300),
        "options": [
            {"letter": o.letter, "title": o.title, "possible": o.possible, "why": clean(o.why, 160)}
            for o in found.options
        ],
        "edits": []
        if found.plan is None
        else [
            {"knob": e.knob, "old": _short(e.old), "new": _short(e.new), "why": clean(e.why, 160)}
            for e in found.plan.edits
        ],
        "diff": [clean(line, 160) for one in found.edited for line in one.diff().splitlines()],
        "loads": [{"file": desk.place(t.file), "ok": t.ok} for t in found.tests],
        "then_must_be_seen": []
        if found.plan is None
        else [
            {"metric": b.metric, "clock": b.clock, "at": b.at, "low": b.low, "high": b.high}
            for b in found.plan.expected
        ],
        "notes": [clean(note, 200) for note in found.notes],
        "written": written,
    }
    return fitted(answer, ("notes", "then_must_be_seen", "diff", "options"))


def _write(desk: Desk, found: Fix, folder: str) -> list[str]:
    if not desk.allow_write:
        raise InputError(
            "this server writes nothing.", do="Start it with --allow-write, or use the diff in the answer."
        )
    target = (desk.roots.folders[0] / folder).resolve()
    if not desk.roots.holds(target) or target in desk.roots.folders:
        raise InputError(
            f"{folder[:200]!r} lies outside the folders that may be used.", do="Name a new folder below them."
        )
    return [desk.roots.name_of(path.resolve()) for path in api.save_fix(found, target)]


def review(
    desk: Desk, run: str, text: str | None = None, claims: Sequence[Mapping[str, Any]] | None = None, offset: int = 0
) -> dict[str, Any]:
    """A written diagnosis, or claims that you read from it, held against the record."""
    known = desk.known(run)
    if (text is None) == (claims is None):
        raise InputError(
            "give either text or claims.",
            do="`text` is the document; `claims` is a list as wheeltapper://schema/claims describes.",
        )
    if text is not None and len(text) > MOST_TEXT:
        raise InputError(
            f"the text has {len(text):,} letters.", do=f"Give at most {MOST_TEXT:,}: the part that makes claims."
        )
    told = review_text(text, known.record) if text is not None else review_claims(_claims(claims or ()), known.record)
    order = [a for verdict in ANSWERED for a in told.answers if a.verdict == verdict]
    shown = [
        {key: value for key, value in answer_object(a).items() if key != "claim"} for a in order[offset : offset + 25]
    ]
    for one in shown:
        one["places"] = [desk.place(place) for place in one["places"]]
        one["why"], one["text"] = clean(one["why"], 200), clean(one["text"], 120)
    answer: dict[str, Any] = {
        "run": run,
        "counts": {verdict: told.count(verdict) for verdict in (*ANSWERED, "no-claim")} | {"unread": len(told.unread)},
        "answers": shown,
        "unread": [{"line": u.line, "text": clean(u.text, 80)} for u in told.unread[:5]],
    }
    out = fitted(answer, ("unread", "answers"))
    reached = offset + len(out["answers"])
    if reached < len(order):
        out["next_offset"] = reached
    return out


def _claims(claims: Sequence[Mapping[str, Any]]) -> tuple[Any, ...]:
    try:
        return msgspec.convert({"claims": list(claims)}, ClaimFile).claims
    except msgspec.ValidationError as error:
        raise InputError(
            f"the claims are not as described: {error}.", do="Read wheeltapper://schema/claims."
        ) from error


def explain(id: str) -> dict[str, Any]:
    """The page of an observation, sign, cause or check."""
    found = [page for page in pages() if page.id == id]
    if not found:
        near = close_matches(id, [page.id for page in pages()])
        raise InputError(
            f"nothing is called {id[:80]!r}.",
            do=f"Did you mean {', '.join(near)}?" if near else "diagnose and check name ids.",
        )
    answer: dict[str, Any] = {
        "id": id,
        "pages": [
            {
                "kind": p.kind,
                "title": p.title,
                "sections": [{"heading": h, "text": clean(t, 700)} for h, t in p.sections[:6]],
            }
            for p in found[:2]
        ],
        "whole": f"wheeltapper://page/{id}",
    }
    return fitted(answer, ("pages",)) if len(found) > 1 else fitted(answer, ())


def _short(value: Any) -> Any:
    return value if isinstance(value, int | float | bool) or value is None else clean(value, 100)
