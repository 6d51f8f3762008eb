"""The report of a trial as Markdown, as one HTML page, and as JSON. Templates are files."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from wheeltapper import __version__
from wheeltapper.report.html import environment
from wheeltapper.report.markdown import esc
from wheeltapper.report.trial_view import SIGNS, trial_view
from wheeltapper.trial.ledger import outcome_record, verdict_record
from wheeltapper.trial.plan import plan_object
from wheeltapper.trial.read import Trial

BADGES = {"confirmed": "sound", "refuted": "ill", "cannot-tell": "cannot-tell", "": "cannot-tell"}


def as_html(trial: Trial) -> str:
    template = environment().get_template("trial.html.j2")
    return template.render(view=trial_view(trial, charts=True), version=__version__, signs=SIGNS, badges=BADGES)


def as_markdown(trial: Trial) -> str:
    template = environment().get_template("trial.md.j2")
    return template.render(view=_escaped(asdict(trial_view(trial))), version=__version__, signs=SIGNS)


def _escaped(value: Any) -> Any:
    """Every text escaped for Markdown; the template adds the marks of its own."""
    if isinstance(value, str):
        return esc(value)
    if isinstance(value, dict):
        return {key: _escaped(v) if key not in ("answer", "kind") else v for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_escaped(v) for v in value]
    return value


def as_object(trial: Trial) -> dict[str, Any]:
    books = trial.books
    return {
        "schema": "wheeltapper/trial",
        "version": "1.0",
        "folder": str(trial.folder),
        "plan": plan_object(trial.plan),
        "closed": books.closed,
        "seconds": books.seconds,
        "verdicts": {arm: verdict_record(v) for arm, v in books.verdicts.items()},
        "abandoned": books.abandoned,
        "outcomes": {arm: [outcome_record(o) for _, o in sorted(by.items())] for arm, by in books.outcomes.items()},
    }
