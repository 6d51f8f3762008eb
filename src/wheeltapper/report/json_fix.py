"""Fix, follow-up and case as JSON for programs.

The shapes are types here, and schema/*.json is made from them (and from those of the plan and the case file), so that
what is written and what is described cannot differ. `python -m wheeltapper.report.json_fix` writes the schemas.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from wheeltapper.judge.model import Verdict
from wheeltapper.remedy.case_file import Attempt, CaseFile
from wheeltapper.remedy.fix import Fix, State
from wheeltapper.remedy.followup import Followup, Status
from wheeltapper.remedy.plan import How, Plan
from wheeltapper.remedy.plan import Option as Letter
from wheeltapper.remedy.promises import Kept

VERSION = "1.1"
Version = Annotated[str, Meta(pattern=r"^1\.[0-9]+$")]


class _Out(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class EditOut(_Out, frozen=True):
    knob: str
    old: Any
    new: Any
    why: str


class TreatmentOut(_Out, frozen=True):
    """A cause, and what is done about it."""

    cause: str
    title: str
    probability: Annotated[float, Meta(ge=0, le=1)]
    proved: Annotated[bool, Meta(description="By code, by settings or by a trial.")]
    how: Annotated[How, Meta(description="In the config, tried in it, by hand in the code, or left open.")]
    remedy: str
    edits: tuple[EditOut, ...]
    places: Annotated[tuple[str, ...], Meta(description="file:line")]


class LeftOut(_Out, frozen=True):
    """A remedy that is not used, and why."""

    cause: str
    text: str
    why: str


class OptionOut(_Out, frozen=True):
    """A way on."""

    letter: Letter
    title: str
    possible: bool
    why: str
    length: Annotated[float | None, Meta(description="Still to be trained, on `clock`.")]
    clock: str | None
    hours: Annotated[float | None, Meta(description="At the pace of the run; null: it has no wall clock.")]
    risk: str
    proves: str
    checkpoint: str | None


class DiffOut(_Out, frozen=True):
    file: str
    diff: str


class CheckOut(_Out, frozen=True):
    name: str
    ok: Annotated[bool | None, Meta(description="null: could not be tried.")]
    text: str


class LoadTestOut(_Out, frozen=True):
    """What was tried on a corrected file."""

    file: str
    checks: tuple[CheckOut, ...]


class FixOut(_Out, frozen=True):
    schema: Literal["wheeltapper/fix"]
    version: Version
    run: str
    verdict: Verdict
    state: Annotated[State, Meta(description="Whether files can be written, and why not.")]
    headline: str
    treatments: tuple[TreatmentOut, ...]
    left: tuple[LeftOut, ...]
    options: tuple[OptionOut, ...]
    option: Annotated[Letter | None, Meta(description="The way that the plan takes.")]
    diffs: tuple[DiffOut, ...]
    tests: tuple[LoadTestOut, ...]
    notes: Annotated[tuple[str, ...], Meta(description="What is left to do by hand.")]
    plan: Plan | None
    written: Annotated[tuple[str, ...], Meta(description="Files; none with --dry-run.")]


class EditCheckOut(_Out, frozen=True):
    knob: str
    wanted: Any
    found: Any
    made: Annotated[bool | None, Meta(description="null: the new run does not tell.")]


class IssueOut(_Out, frozen=True):
    cause: str
    title: str
    status: Status
    why: str
    undone: Annotated[bool, Meta(description="The edit is in the settings, and the run did as before.")]


class PromiseOut(_Out, frozen=True):
    what: str
    status: Kept
    saw: str
    source: str


class FollowupOut(_Out, frozen=True):
    schema: Literal["wheeltapper/followup"]
    version: Version
    run: str
    verdict: Verdict
    headline: str
    outcome: Literal["kept", "broken", "not yet"]
    edits: tuple[EditCheckOut, ...]
    issues: tuple[IssueOut, ...]
    promises: tuple[PromiseOut, ...]
    warnings: Annotated[tuple[str, ...], Meta(description="Thresholds of the plan that were passed.")]
    fresh: Annotated[tuple[str, ...], Meta(description="Trouble that the old run did not have.")]
    also: Annotated[tuple[str, ...], Meta(description="Settings that changed beside the plan.")]
    todo: tuple[str, ...]


class LessonsOut(_Out, frozen=True):
    schema: Literal["wheeltapper/case"]
    version: Literal[1]
    name: str
    refuted: Annotated[dict[str, str], Meta(description="Causes that were ruled out, and how.")]
    attempts: tuple[Attempt, ...] = ()


def fix_object(fix: Fix, written: Sequence[str] = ()) -> dict[str, Any]:
    out = FixOut(
        schema="wheeltapper/fix",
        version=VERSION,
        run=fix.diagnosis.run.name,
        verdict=fix.diagnosis.verdict,
        state=fix.state,
        headline=fix.headline,
        treatments=tuple(
            TreatmentOut(
                cause=t.cause,
                title=t.title,
                probability=t.probability,
                proved=t.proved,
                how=t.how,
                remedy=t.remedy.text,
                edits=tuple(EditOut(knob=e.knob, old=e.old, new=e.new, why=e.why) for e in t.edits),
                places=tuple(str(place) for place in t.places),
            )
            for t in fix.choice.treatments
        ),
        left=tuple(LeftOut(cause=item.cause, text=item.text, why=item.why) for item in fix.choice.left),
        options=tuple(
            OptionOut(
                letter=o.letter,
                title=o.title,
                possible=o.possible,
                why=o.why,
                length=o.length,
                clock=o.clock,
                hours=o.hours,
                risk=o.risk,
                proves=o.proves,
                checkpoint=o.checkpoint,
            )
            for o in fix.options
        ),
        option=fix.letter,
        diffs=tuple(DiffOut(file=e.file, diff=e.diff()) for e in fix.edited),
        tests=tuple(
            LoadTestOut(file=t.file, checks=tuple(CheckOut(name=c.name, ok=c.ok, text=c.text) for c in t.checks))
            for t in fix.tests
        ),
        notes=fix.notes,
        plan=fix.plan,
        written=tuple(written),
    )
    return _plain(out)


def followup_object(result: Followup) -> dict[str, Any]:
    out = FollowupOut(
        schema="wheeltapper/followup",
        version=VERSION,
        run=result.run,
        verdict=result.verdict,
        headline=result.headline,
        outcome=result.outcome,
        edits=tuple(EditCheckOut(knob=e.knob, wanted=e.wanted, found=e.found, made=e.made) for e in result.edits),
        issues=tuple(
            IssueOut(cause=i.cause, title=i.title, status=i.status, why=i.why, undone=i.undone) for i in result.issues
        ),
        promises=tuple(PromiseOut(what=p.what, status=p.status, saw=p.saw, source=p.source) for p in result.promises),
        warnings=result.warnings,
        fresh=result.fresh,
        also=result.also,
        todo=result.todo,
    )
    return _plain(out)


def case_object(case: CaseFile) -> dict[str, Any]:
    return _plain(
        LessonsOut(schema="wheeltapper/case", version=1, name=case.name, refuted=case.refuted, attempts=case.attempts)
    )


def _plain(out: msgspec.Struct) -> dict[str, Any]:
    made: dict[str, Any] = msgspec.to_builtins(out)
    return made


# Name of the file, its type, and what it describes.
SCHEMAS: Mapping[str, tuple[type, str]] = {
    "fix": (FixOut, "Output of `wheeltapper fix --json`"),
    "followup": (FollowupOut, "Output of `wheeltapper followup --json`"),
    "lessons": (LessonsOut, "Output of `wheeltapper lessons --json`"),
    "plan": (Plan, "plan.yaml, as `wheeltapper fix` writes it"),
    "case": (CaseFile, "case.json, the history of a case"),
}


def schema_of(name: str) -> dict[str, Any]:
    """schema/NAME.json, made from the types that are written, or that the loader checks with."""
    kind, title = SCHEMAS[name]
    (root,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    top = parts.pop(root["$ref"].rpartition("/")[2])
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"wheeltapper/{name}"}
    return {**head, **top, "title": title, "$defs": parts}


def main() -> None:
    folder = Path(__file__).parent / "schema"
    for name in SCHEMAS:
        (folder / f"{name}.json").write_text(json.dumps(schema_of(name), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
