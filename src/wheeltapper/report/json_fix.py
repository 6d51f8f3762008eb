"""Fix, follow-up and case as JSON for programs. The plan inside is the one that schema/plan.json describes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from wheeltapper.remedy.case_file import CaseFile
from wheeltapper.remedy.fix import Fix
from wheeltapper.remedy.followup import Followup
from wheeltapper.remedy.plan import Plan

VERSION = "1.0"


def fix_object(fix: Fix, written: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "schema": "wheeltapper/fix",
        "version": VERSION,
        "run": fix.diagnosis.run.name,
        "verdict": fix.diagnosis.verdict,
        "state": fix.state,
        "headline": fix.headline,
        "treatments": [
            {
                "cause": t.cause,
                "title": t.title,
                "probability": t.probability,
                "proved": t.proved,
                "how": t.how,
                "remedy": t.remedy.text,
                "edits": [{"knob": e.knob, "old": e.old, "new": e.new, "why": e.why} for e in t.edits],
                "places": [str(place) for place in t.places],
            }
            for t in fix.choice.treatments
        ],
        "left": [{"cause": item.cause, "text": item.text, "why": item.why} for item in fix.choice.left],
        "options": [
            {
                "letter": o.letter,
                "title": o.title,
                "possible": o.possible,
                "why": o.why,
                "length": o.length,
                "clock": o.clock,
                "hours": o.hours,
                "risk": o.risk,
                "proves": o.proves,
                "checkpoint": o.checkpoint,
            }
            for o in fix.options
        ],
        "option": fix.letter,
        "diffs": [{"file": e.file, "diff": e.diff()} for e in fix.edited],
        "tests": [
            {"file": t.file, "checks": [{"name": c.name, "ok": c.ok, "text": c.text} for c in t.checks]}
            for t in fix.tests
        ],
        "plan": None if fix.plan is None else msgspec.to_builtins(fix.plan),
        "written": list(written),
    }


def followup_object(result: Followup) -> dict[str, Any]:
    return {
        "schema": "wheeltapper/followup",
        "version": VERSION,
        "run": result.run,
        "verdict": result.verdict,
        "headline": result.headline,
        "outcome": result.outcome,
        "edits": [{"knob": e.knob, "wanted": e.wanted, "found": e.found, "made": e.made} for e in result.edits],
        "issues": [{"cause": i.cause, "status": i.status, "why": i.why} for i in result.issues],
        "promises": [{"what": p.what, "status": p.status, "saw": p.saw, "source": p.source} for p in result.promises],
        "warnings": list(result.warnings),
        "fresh": list(result.fresh),
        "also": list(result.also),
        "todo": list(result.todo),
    }


def case_object(case: CaseFile) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(case)
    return {"schema": "wheeltapper/case", **found, "refuted": case.refuted}


def plan_schema() -> dict[str, Any]:
    """schema/plan.json, made from the types that the loader checks with, so that the two cannot differ."""
    made = msgspec.json.schema(Plan, ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "wheeltapper plan", **made}
