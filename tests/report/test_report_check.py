"""The report of an audit: terminal, JSON and its schema."""

from __future__ import annotations

import io
import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

from report_sample import EVIL
from wheeltapper.audit.model import AuditReport, Row
from wheeltapper.finding import Finding, Place
from wheeltapper.report.json_out import check_object, dumps
from wheeltapper.report.terminal import console
from wheeltapper.report.terminal_check import print_audit
from wheeltapper.simulate.plan import Plan, PlanEvent


def sample_audit(**changes) -> AuditReport:
    fields = {
        "subject": "train.py",
        "rows": (
            Row("effective batch", "256", "64 per device x 4 accumulated", Place("c.yaml", 3, 13)),
            Row("optimizer", EVIL, "set"),
        ),
        "findings": (
            Finding("clip-after-step", "clipped at 12, used at 10", "ill", "is", places=(Place("train.py", 12, 5),)),
            Finding("no-page-of-mine", EVIL, "watch", "suspected", places=(Place("train.py", 40), Place("c.yaml", 2))),
        ),
        "notes": (f"could not follow {EVIL}",),
        "plan": Plan("x", np.linspace(1, 0, 101)[None, :], events=(PlanEvent("end", 100.0, "LR 0 from 100"),)),
        "dialect": "timm",
        "files": ("train.py", "c.yaml"),
    }
    return AuditReport(**{**fields, **changes})


def printed(report: AuditReport, width: int = 80) -> str:
    out = io.StringIO()
    print_audit(report, console(out, width=width))
    return out.getvalue()


def test_the_terminal_says_what_it_does_and_what_is_wrong() -> None:
    text = printed(sample_audit())
    assert "effective batch  256" in text
    assert "✗ clip-after-step  train.py:12:5" in text
    assert "see also c.yaml:2" in text
    assert "⠉" in text, "the plan is drawn"
    assert "\x1b" not in text
    assert max(len(line) for line in text.splitlines()) <= 80


def test_nothing_found_is_said() -> None:
    assert "✓ Nothing is declared that is not so" in printed(AuditReport("c.yaml"))


@pytest.mark.parametrize("report", [sample_audit(), sample_audit(plan=None, dialect=None), AuditReport("x")])
def test_the_json_fits_its_schema(report: AuditReport) -> None:
    schema = json.loads((files("wheeltapper.report") / "schema" / "check.json").read_text(encoding="utf-8"))
    out = json.loads(dumps(check_object(report)))
    jsonschema.validate(out, schema)
    titles = [f["title"] for f in out["findings"]]
    assert titles[:1] in ([], ["Gradients are clipped after the optimizer has used them."])
