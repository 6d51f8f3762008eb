"""The plan and the report of a trial in the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.text import Text

from wheeltapper.report.terminal import heading_rule, indented, plain_table, put
from wheeltapper.report.text import clean
from wheeltapper.report.trial_view import SIGNS, ArmView, plan_rows, trial_view
from wheeltapper.trial.plan import TrialPlan
from wheeltapper.trial.read import Trial
from wheeltapper.trial.search import Differences, words

STYLE = {"confirmed": "bold green", "refuted": "bold red", "cannot-tell": "bold yellow", "": "dim"}


def print_plan(plan: TrialPlan, out: Console) -> None:
    """What will be run, what it costs and what each outcome would mean."""
    parts: list[RenderableType] = [
        Text.assemble(("Trial of ", "bold"), (clean(plan.name, 120), "bold")),
        Text(clean(plan.headline, 300), style="dim"),
        heading_rule("Plan"),
        _facts(plan_rows(plan)),
        heading_rule("Arms"),
    ]
    for arm in plan.arms:
        parts.append(Text.assemble((f"{clean(arm.id, 80)}  ", "bold"), clean(arm.text, 300)))
        if arm.means[0]:
            parts.append(indented(Text(f"goes away:  {clean(arm.means[0], 200)}", style="dim")))
            parts.append(indented(Text(f"stays:      {clean(arm.means[1], 200)}", style="dim")))
    if plan.notes:
        parts += [heading_rule("Mind"), *(indented(Text(clean(note, 300))) for note in plan.notes)]
    if plan.left:
        parts += [heading_rule("Not tried"), _facts(tuple((c, clean(why, 300)) for c, why in plan.left))]
    put(out, Group(*parts), Text(""))


def print_search(plan: TrialPlan, found: Differences | None, commits: Sequence[str], out: Console) -> None:
    """What a search will look among."""
    rows = [row for row in plan_rows(plan) if row[0] in ("question", "starts from", "runs to", "seeds", "where")]
    if found is not None:
        rows.append(("among", words(found.edits)))
        rows += [("not tried", f"{name}: {why}") for name, why in found.left]
    if commits:
        rows.append(("among", f"{len(commits)} commits, {commits[0][:12]} to {commits[-1][:12]}"))
    head = Text.assemble(("Search for what broke ", "bold"), (clean(plan.name, 120), "bold"))
    put(out, Group(head, heading_rule("Plan"), _facts(tuple((n, clean(t, 2000)) for n, t in rows))), Text(""))


def print_report(trial: Trial, out: Console) -> None:
    view = trial_view(trial)
    parts: list[RenderableType] = [Text(""), Text(view.headline, style="bold"), Text(view.state, style="dim")]
    parts += [Text(line, style="dim") for line in view.control]
    for arm in view.arms:
        parts += _arm(arm)
    if view.failures:
        parts += [heading_rule("Runs without an outcome"), _facts(view.failures)]
    put(out, Group(*parts), Text(f"\nWhole record: {view.folder}", style="dim"))


def _arm(arm: ArmView) -> list[RenderableType]:
    head = Text.assemble(
        (f"{SIGNS[arm.answer]} {arm.words.upper()}", STYLE[arm.answer]), "  ", (arm.id, "bold"), "  ", arm.text
    )
    parts: list[RenderableType] = [Text(""), head, indented(Text(arm.why))]
    if arm.rung:
        parts.append(indented(Text(f"reached: {arm.rung}", style="dim")))
    if arm.repeats:
        table = plain_table()
        for name in ("seed", "control", "changed", "difference"):
            table.add_column(Text(name, style="dim"), no_wrap=True)
        for r in arm.repeats:
            table.add_row(Text(str(r.seed)), Text(r.control), Text(r.arm), Text(r.difference))
        table.show_header = True
        parts.append(indented(table))
    return parts


def _facts(rows: tuple[tuple[str, str], ...]) -> RenderableType:
    table = plain_table()
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    return table
