"""What a run will really do, and what was declared and is not so, in the terminal."""

from __future__ import annotations

import os

import numpy as np
from rich.console import Console, Group, RenderableType
from rich.text import Text

from wheeltapper.audit.model import AuditReport
from wheeltapper.finding import Finding
from wheeltapper.report.terminal import SEVERITY, fact_table, heading_rule, indented, listed, most, put
from wheeltapper.report.text import clean, plural
from wheeltapper.report.textplot import plot
from wheeltapper.report.view import GRADE_WORDS, Row, nearer

MOST_FINDINGS = 60
GRADES = {
    **GRADE_WORDS,
    "is": "certain: the code, the framework's own rules, or arithmetic",
    "suspected": "suspected: worth a look",
}


def print_audit(report: AuditReport, out: Console) -> None:
    here = _base(report)
    parts: list[RenderableType] = [Text(nearer(clean(report.subject, 200), here), style="bold")]
    under = [f"read as {clean(report.dialect, 40)}"] if report.dialect else []
    under.append(plural(len(report.files), "file"))
    parts.append(Text(" · ".join(under), style="dim"))
    if report.rows:
        rows = [
            Row(clean(r.label, 40), clean(r.value, 200), nearer(clean(_how(r.how, r.place), 300), here))
            for r in report.rows
        ]
        parts += [heading_rule("What it will really do"), fact_table(rows)]
    if report.plan is not None and np.isfinite(report.plan.lr()).any():
        ticks = np.arange(report.plan.n + 1, dtype=np.float64)
        parts.append(heading_rule(f"Planned learning rate, by {report.plan.unit}"))
        parts.append(
            Text("\n".join(plot(ticks, report.plan.lr(), width=out.width, height=7)), style="cyan", no_wrap=True)
        )
    normal = [f for f in report.findings if f.grade == "expected"]
    findings = [f for f in report.findings if f.grade != "expected"]
    parts.append(heading_rule(f"Findings ({len(findings)})"))
    if not findings:
        parts.append(Text("✓ Nothing is declared that is not so, as far as these files show.", style="green"))
    parts += [_finding(finding, here) for finding in findings[:MOST_FINDINGS]]
    if len(findings) > MOST_FINDINGS:
        parts.append(Text(f"and {len(findings) - MOST_FINDINGS:,} more: --json", style="dim"))
    if normal:
        parts += [heading_rule("Looks odd, is normal here"), *(_finding(finding, here) for finding in normal)]
    if report.notes:
        notes = [nearer(clean(note), here) for note in report.notes]
        parts += [heading_rule("Notes"), listed("•", most(notes, 15))]
    put(out, *parts)


def _base(report: AuditReport) -> str:
    """The folder that all files are inside: a long path on every line hides the point."""
    folders = {os.path.dirname(file) for file in report.files}
    try:
        shared = os.path.commonpath(folders) if folders else ""
    except ValueError:  # absolute and relative paths, or two drives
        return ""
    return shared.rstrip("/") + "/" if shared else ""


def _how(how: str, place: object | None) -> str:
    return f"{how}, {place}" if place is not None else how


def _finding(finding: Finding, here: str) -> RenderableType:
    mark, style = SEVERITY[finding.severity]
    places = [nearer(clean(place, 300), here) for place in finding.places]
    head = Text.assemble((f"{mark} {clean(finding.id, 60)}", f"bold {style}"))
    if places:
        head.append(f"  {places[0]}")
    also = f"; see also {', '.join(dict.fromkeys(places[1:4]))}" if len(places) > 1 else ""
    return Group(
        head,
        indented(Group(Text(clean(finding.summary, 800)), Text(GRADES[finding.grade] + also, style="dim"))),
    )
