"""A fix, a follow-up and a case history in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from wheeltapper.report.fix_view import (
    PROMISE_SIGNS,
    AttemptView,
    DiffView,
    FixView,
    FollowupView,
    IssueView,
    OptionView,
    PlanView,
)
from wheeltapper.report.terminal import SIGNS, STYLE, heading_rule, indented, listed, plain_table, put
from wheeltapper.report.view import Row

DIFF_STYLE = {"head": "bold", "hunk": "cyan", "old": "red", "new": "green", "same": ""}
STATUS_STYLE = {
    "FIXED": "bold green", "PARTIAL": "bold yellow", "OPEN": "bold yellow", "REFUTED": "bold red", "NOT YET": "bold",
}  # fmt: skip
PROMISE_STYLE = {"kept": "green", "broken": "red", "not yet": "", "cannot look": "dim"}
OUTCOME_STYLE = {"kept": "bold green", "broken": "bold red", "not yet": "bold yellow"}


def print_diff(view: FixView, out: Console) -> None:
    """Only what would change, and for what."""
    if not view.diffs:
        put(out, Text(view.headline, style="bold"), Text("No config would be changed."))
        return
    put(
        out,
        Text(view.headline, style="bold"),
        *(part for diff in view.diffs for part in (Text(diff.file, style="dim"), _diff(diff))),
    )
    if view.notes:
        put(out, listed("•", view.notes))


def print_fix(view: FixView, out: Console, written: Sequence[str] = ()) -> None:
    head = Text.assemble(
        (f"{SIGNS[view.verdict]} {view.verdict_words.upper()}", STYLE[view.verdict]), "  ", (view.name, "bold")
    )
    parts: list[RenderableType] = [head, Text(view.diagnosis, style="dim"), Text(""), Text(view.headline, style="bold")]
    if view.diffs:
        parts.append(heading_rule("What changes"))
        for diff in view.diffs:
            parts += [Text(diff.file, style="dim"), _diff(diff)]
            parts += [Text(check, style="dim") for check in diff.checks]
    if view.issues:
        parts += [heading_rule("For what"), *(_issue(issue) for issue in view.issues)]
    if view.options:
        parts += [heading_rule("The ways on"), *(_option(option) for option in view.options)]
    if view.plan is not None:
        parts += _plan(view.plan)
    if view.left:
        parts.append(heading_rule("Not done, and why"))
        for row in view.left:
            parts += [Text.assemble((f"{row.name}: ", "bold"), row.value), indented(Text(row.why))]
    if view.state == "cannot-tell" and view.collect:
        parts += [heading_rule("What to collect first"), _rows(view.collect)]
    if view.notes:
        parts += [heading_rule("By hand"), listed("•", view.notes)]
    if written:
        parts += [heading_rule("Written"), *(Text(f"  {path}") for path in written)]
    put(out, *parts)
    if view.commands:
        put(out, heading_rule("Next"))
        for line in view.commands:
            out.print(Text(f"  {line}"), soft_wrap=True)  # a wrapped command cannot be pasted


def _diff(diff: DiffView) -> RenderableType:
    text = Text(no_wrap=False)
    for line in diff.lines:
        text.append(line.text + "\n", style=DIFF_STYLE[line.kind])
    text.rstrip()
    return indented(text)


def _issue(issue: IssueView) -> RenderableType:
    body: list[RenderableType] = []
    if issue.remedy:
        body.append(Text(issue.remedy))
    body += [Text(edit, style="cyan") for edit in issue.edits]
    if issue.places and issue.how == "code":
        body.append(Text.assemble(("where: ", "bold"), ", ".join(issue.places)))
    if issue.predicts and issue.how != "open":
        body.append(Text(f"then: {issue.predicts}", style="dim"))
    if issue.trial and issue.share != "proved":
        body.append(Text.assemble(("to prove it: ", "bold"), issue.trial))
    head = Text.assemble((issue.title, "bold"), f"  {issue.cause}, {issue.share}; {issue.how_words}")
    return Group(head, indented(Group(*body)))


def _option(option: OptionView) -> RenderableType:
    style = "bold" if option.possible else "dim"
    head = Text.assemble((f"{option.letter}  {option.title}", style))
    if option.chosen:
        head.append("  ← this one", style="bold green")
    elif not option.possible:
        head.append("  not open", style="yellow")
    body: list[RenderableType] = [Text(option.why, style="" if option.possible else "dim")]
    body += [Text.assemble((f"{name}: ", "bold"), text) for name, text in option.rows]
    body += [Text(f"• {line}") for line in option.todo]
    return Group(head, Padding(Group(*body), (0, 0, 0, 3)))


def _plan(plan: PlanView) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if plan.expected:
        table = plain_table()
        for _ in range(3):
            table.add_column(no_wrap=True)
        table.add_column(style="dim", overflow="fold")
        before = ""
        for band in plan.expected:
            table.add_row(
                Text(band.where),
                Text(band.metric),
                Text(band.band, style="bold"),
                Text("" if band.source == before else band.source),
            )
            before = band.source
        parts += [heading_rule("What must then be seen"), table]
    if plan.warnings:
        parts += [heading_rule("Look at once if"), _rows(plan.warnings)]
    if plan.rules:
        parts.append(heading_rule("If, then"))
        for when, then in plan.rules:
            parts += [Text.assemble(("if ", "bold"), when), indented(Text.assemble(("then ", "bold"), then))]
    if plan.monitoring:
        parts += [heading_rule("When to look"), _rows(plan.monitoring)]
    if plan.questions:
        parts += [heading_rule("Open questions, and the test that decides each"), _rows(plan.questions)]
    return parts


def _rows(rows: Sequence[Row]) -> RenderableType:
    parts: list[RenderableType] = []
    for row in rows:
        head = Text(row.name, style="bold")
        if row.value:
            head.append(f"  {row.value}", style="not bold")
        parts += [head, indented(Text(row.why))] if row.why else [head]
    return Group(*parts)


def print_followup(view: FollowupView, out: Console) -> None:
    head = Text.assemble((view.outcome_words.upper(), OUTCOME_STYLE[view.outcome]), "  ", (view.name, "bold"))
    parts: list[RenderableType] = [head, Text(view.told, style="dim")]
    if view.issues:
        parts.append(heading_rule("Causes"))
        for row in view.issues:
            parts += [
                Text.assemble((f"{row.value:<8} ", STATUS_STYLE[row.value]), (row.name, "bold")),
                indented(Text(row.why)),
            ]
    if view.edits:
        parts.append(heading_rule("Were the edits made?"))
        parts += [Text.assemble((f"{row.name}  ", "bold"), row.value) for row in view.edits]
    if view.also:
        parts += [heading_rule("Changed beside the plan"), listed("•", view.also)]
    if view.promises:
        table = plain_table()
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        table.add_column(overflow="fold")
        for row in view.promises:
            style = PROMISE_STYLE[row.value]
            table.add_row(Text(f"{PROMISE_SIGNS[row.value]} {row.value}", style=style), Text(row.name), Text(row.why))
        parts += [heading_rule("Promises"), table]
    if view.warnings:
        parts += [heading_rule("Warnings of the plan that rang"), listed("!", view.warnings)]
    if view.fresh:
        parts += [heading_rule("New trouble"), listed("✗", view.fresh)]
    if view.todo:
        parts += [heading_rule("What to do"), listed("#", view.todo)]
    put(out, *parts)


def print_lessons(name: str, attempts: Sequence[AttemptView], refuted: Sequence[Row], out: Console) -> None:
    parts: list[RenderableType] = [Text(name, style="bold")]
    for attempt in attempts:
        parts += [heading_rule(attempt.title), Text(attempt.headline, style="dim")]
        parts += [Text(edit, style="cyan") for edit in attempt.edits]
        for row in attempt.verdicts:
            line = Text.assemble((row.value, STATUS_STYLE.get(row.value, "bold")), f" {row.name}")
            parts.append(line.append(f": {row.why}" if row.why else ""))
        parts += [Text(attempt.promises)] if attempt.promises else []
        parts += [Text(f"next: {line}") for line in attempt.todo]
    if refuted:
        parts.append(heading_rule("Refuted so far: not to be tried again"))
        parts += [Text.assemble((f"{row.name}: ", "bold"), row.why) for row in refuted]
    put(out, *parts)
