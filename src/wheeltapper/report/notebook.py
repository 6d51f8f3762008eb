"""Runs, diagnoses and fixes in a notebook."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from wheeltapper.judge.model import SOMETHING_ELSE, Diagnosis
from wheeltapper.remedy.fix import Fix
from wheeltapper.report.json_fix import fix_object
from wheeltapper.report.json_out import diagnoses_object, plain, show_object
from wheeltapper.report.text import clean, percent, plural
from wheeltapper.report.view import chance_words, curve_line, value_words, verdict_words
from wheeltapper.run.model import Run
from wheeltapper.shown import FACES, Face

COLOURS = {"ill": "#b42318", "sound": "#17713a", "cannot-tell": "#9a6200"}
BOX = "border:1px solid #8884;border-radius:.5em;padding:.7em 1em;max-width:60em"
MOST_CAUSES = 4
MOST_CURVES = 8


def _html(title: Markup, *parts: Markup) -> str:
    inside = Markup("").join(parts)
    return str(Markup('<div style="{}"><div>{}</div>{}</div>').format(BOX, title, inside))


def _list(title: str, lines: Iterable[str]) -> Markup:
    items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<p style='margin:.6em 0 0'><b>{}</b></p><ul style='margin:.2em 0'>{}</ul>").format(title, items) if items else Markup("")


def _table(rows: Iterable[tuple[str, ...]]) -> Markup:
    made = [Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td style='text-align:left'>{}</td>").format(c) for c in row)) for row in rows]
    return Markup("<table style='margin:.4em 0'>{}</table>").format(Markup("").join(made)) if made else Markup("")


def _badge(verdict: str, words: str) -> Markup:
    return Markup("<b style='color:{}'>{}</b>").format(COLOURS[verdict], words)


def diagnosis_line(d: Diagnosis) -> str:
    return f"<Diagnosis {clean(d.run.name, 60)}: {verdict_words(d)} {chance_words(d)}. {clean(d.headline, 120)}>"


def diagnosis_card(d: Diagnosis) -> str:
    known = [c for c in d.causes if c.id != SOMETHING_ELSE][:MOST_CAUSES] if d.verdict != "sound" else []
    title = Markup("{} {} <b>{}</b>").format(_badge(d.verdict, verdict_words(d)), chance_words(d), clean(d.run.name, 80))
    headline = Markup("<p style='margin:.3em 0'>{}</p>").format(clean(d.headline))
    causes = _table((percent(c.probability), clean(c.title)) for c in known)
    return _html(title, headline, causes, _list("What to do", map(clean, d.todo)))


def diagnosis_rows(d: Diagnosis) -> list[dict[str, Any]]:
    """A row for each cause."""
    return [
        {"run": d.run.name, "verdict": d.verdict, "p_ill": d.p_ill, "cause": c.id, "title": c.title, "probability": c.probability}
        for c in d.causes
    ]


def fleet_rows(diagnoses: Iterable[Diagnosis]) -> list[dict[str, Any]]:
    """A row for each run: what a table of many shows."""
    out = []
    for d in diagnoses:
        cause = next((c for c in d.causes if c.id != SOMETHING_ELSE), None) if d.verdict != "sound" else None
        best = d.best if d.best is not None and not d.best.nothing else None
        out.append(
            {
                "run": d.run.name, "verdict": d.verdict, "p_ill": d.p_ill, "trouble": d.trouble, "headline": d.headline,
                "cause": cause.id if cause else None, "metric": best.metric if best else None,
                "best": best.value if best else None, "state": d.progress.state, "root": d.run.root,
            }
        )  # fmt: skip
    return out


def run_line(run: Run) -> str:
    points = sum(len(s) for s in run.series.values())
    return f"<Run {clean(run.name, 60)}: {plural(len(run.series), 'series', 'series')}, {plural(points, 'point')}, {clean(', '.join(run.formats), 80)}>"


def run_card(run: Run) -> str:
    lines = [curve_line(series) for series in list(run.series.values())[:MOST_CURVES]]
    title = Markup("<b>{}</b> {}").format(clean(run.name, 80), clean(", ".join(run.formats), 120))
    more = len(run.series) - len(lines)
    rest = Markup("<p>and {} more</p>").format(more) if more > 0 else Markup("")
    return _html(title, _table((line.name, line.picture, line.numbers) for line in lines), rest)


def run_rows(run: Run) -> list[dict[str, Any]]:
    """A row for each point."""
    return [
        {"series": s.name, "clock": s.clock, "at": float(at), "value": float(value)}
        for s in run.series.values()
        for at, value in zip(s.at, s.values, strict=True)
    ]


def fix_line(fix: Fix) -> str:
    return f"<Fix of {clean(fix.diagnosis.run.name, 60)}: {clean(fix.headline, 160)}>"


def fix_rows(fix: Fix) -> list[dict[str, Any]]:
    """A row for each changed setting."""
    return [
        {"cause": treatment.cause, "knob": edit.knob, "old": edit.old, "new": edit.new, "why": edit.why}
        for treatment in fix.choice.treatments
        for edit in treatment.edits
    ]


def fix_card(fix: Fix) -> str:
    title = Markup("<b>{}</b> {}").format(f"Fix of {clean(fix.diagnosis.run.name, 80)}", escape(fix.state))
    edits = _table((clean(r["knob"], 60), f"{value_words(r['old'])} → {value_words(r['new'])}", clean(r["why"])) for r in fix_rows(fix))
    return _html(title, Markup("<p style='margin:.3em 0'>{}</p>").format(clean(fix.headline)), edits)


def _diagnosis_dict(d: Diagnosis) -> dict[str, Any]:
    out: dict[str, Any] = plain(diagnoses_object([d])["runs"][0])
    return out


def _run_dict(run: Run) -> dict[str, Any]:
    out: dict[str, Any] = plain(show_object([run])["runs"][0])
    return out


def register() -> None:
    """Tell shown.py how each class looks."""
    FACES["Diagnosis"] = Face(diagnosis_line, diagnosis_card, _diagnosis_dict, diagnosis_rows)
    FACES["Run"] = Face(run_line, run_card, _run_dict, run_rows)
    FACES["Fix"] = Face(fix_line, fix_card, fix_object, fix_rows)
