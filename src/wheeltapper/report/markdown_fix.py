"""A fix and a follow-up as Markdown: fix.md beside the plan, and text to paste into an issue."""

from __future__ import annotations

from collections.abc import Iterable

from wheeltapper.report.fix_view import PROMISE_SIGNS, FixView, FollowupView, OptionView, PlanView
from wheeltapper.report.markdown import SIGNS, code, esc
from wheeltapper.report.view import Row


def render_fix(view: FixView) -> str:
    parts = [f"# Fix: {esc(view.name)}", f"{SIGNS[view.verdict]} {esc(view.diagnosis)}", f"**{esc(view.headline)}**"]
    if view.changes:
        rows = "".join(
            f"\n| {code(c.knob)} | {code(c.old)} | {code(c.new)} | {esc(c.why)} | {code(c.place)} |"
            for c in view.changes
        )
        parts.append(
            f"## Before and after\n\n| setting | before | after | why | where |\n| --- | --- | --- | --- | --- |{rows}"
        )
    for diff in view.diffs:
        body = "\n".join(line.text.replace("```", "'''") for line in diff.lines)
        checks = "".join(f"\n- {esc(check)}" for check in diff.checks)
        parts.append(f"{code(diff.file)}\n\n```diff\n{body}\n```\n\nTried on the corrected file:\n{checks}")
    if view.issues:
        parts.append("## For what\n\n" + "\n".join(_issue_lines(view)))
    if view.options:
        parts.append("## The ways on\n\n" + "\n\n".join(_option(o) for o in view.options))
    if view.plan is not None:
        parts += _plan(view.plan)
    if view.left:
        parts.append(
            "## Not done, and why\n\n" + "\n".join(f"- {code(r.name)} {esc(r.value)}: {esc(r.why)}" for r in view.left)
        )
    if view.state == "cannot-tell" and view.collect:
        parts.append("## What to collect first\n\n" + _rows(view.collect))
    if view.notes:
        parts.append("## By hand\n\n" + "\n".join(f"- {esc(note)}" for note in view.notes))
    if view.commands:
        body = "\n".join(line.replace("`", "'") for line in view.commands)
        parts.append(f"## Next\n\n```sh\n{body}\n```")
    return "\n\n".join(parts) + "\n"


def _issue_lines(view: FixView) -> Iterable[str]:
    for issue in view.issues:
        yield f"- **{esc(issue.title)}** ({code(issue.cause)}, {issue.share}): {issue.how_words}. {esc(issue.remedy)}".rstrip()
        if issue.places and issue.how == "code":
            yield f"  - where: {', '.join(code(p) for p in issue.places)}"
        for edit in issue.edits:
            yield f"  - {code(edit)}"
        if issue.predicts and issue.how != "open":
            yield f"  - then: {esc(issue.predicts)}"
        if issue.trial and issue.share != "proved":
            yield f"  - to prove it: {esc(issue.trial)}"


def _option(option: OptionView) -> str:
    mark = " ← this one" if option.chosen else "" if option.possible else " (not open)"
    lines = [f"**{option.letter}. {esc(option.title)}**{mark}", "", esc(option.why)]
    items = [*(f"- {name}: {esc(text)}" for name, text in option.rows), *(f"- {esc(line)}" for line in option.todo)]
    return "\n".join([*lines, "", *items] if items else lines)


def _plan(plan: PlanView) -> list[str]:
    parts = []
    if plan.expected:
        rows = "".join(
            f"\n| {esc(b.where)} | {esc(b.metric)} | {esc(b.band)} | {esc(b.source)} |" for b in plan.expected
        )
        parts.append(
            f"## What must then be seen\n\n| where | metric | expected | known from |\n| --- | --- | --- | --- |{rows}"
        )
    if plan.warnings:
        parts.append("## Look at once if\n\n" + _rows(plan.warnings))
    if plan.rules:
        parts.append("## If, then\n\n" + "\n".join(f"- **If** {esc(a)}, **then** {esc(b)}" for a, b in plan.rules))
    if plan.monitoring:
        parts.append("## When to look\n\n" + _rows(plan.monitoring))
    if plan.questions:
        parts.append("## Open questions, and the test that decides each\n\n" + _rows(plan.questions))
    return parts


def _rows(rows: Iterable[Row]) -> str:
    return "\n".join(
        f"- **{esc(r.name)}**" + (f" {esc(r.value)}" if r.value else "") + (f": {esc(r.why)}" if r.why else "")
        for r in rows
    )


def render_followup(view: FollowupView) -> str:
    parts = [f"### {view.outcome_words}: {esc(view.name)}", f"{SIGNS[view.verdict]} {esc(view.headline)}"]
    if view.issues:
        rows = "".join(f"\n| **{r.value}** | {code(r.name)} | {esc(r.why)} |" for r in view.issues)
        parts.append(f"| status | cause | evidence |\n| --- | --- | --- |{rows}")
    if view.edits:
        parts.append(
            "**Were the edits made?**\n\n" + "\n".join(f"- {code(r.name)}: {esc(r.value)}" for r in view.edits)
        )
    if view.promises:
        rows = "".join(
            f"\n| {PROMISE_SIGNS[r.value]} {r.value} | {esc(r.name)} | {esc(r.why)} |" for r in view.promises
        )
        parts.append(f"| | promise | seen |\n| --- | --- | --- |{rows}")
    for title, lines in (
        ("Changed beside the plan", view.also),
        ("Warnings of the plan that rang", view.warnings),
        ("New trouble", view.fresh),
    ):
        if lines:
            parts.append(f"**{title}**\n\n" + "\n".join(f"- {esc(line)}" for line in lines))
    if view.todo:
        parts.append("**What to do**\n\n" + "\n".join(f"{n}. {esc(line)}" for n, line in enumerate(view.todo, start=1)))
    return "\n\n".join(parts) + "\n"
