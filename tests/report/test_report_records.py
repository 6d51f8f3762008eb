"""Every renderer on real records: valid against the schema, well formed, within the width."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

from shared_folder import shared_runs_dir
from wheeltapper import api
from wheeltapper.report import html, json_out, markdown
from wheeltapper.report.terminal import console, print_diagnoses
from wheeltapper.report.terminal_show import print_runs
from wheeltapper.report.view import view_of

SHARED = shared_runs_dir()
# Every sixth by name: all formats are seen over time, and the test stays quick.
RECORDS = [] if SHARED is None else sorted(p for p in SHARED.iterdir() if p.is_dir())[::6]


def validator(name: str) -> jsonschema.Draft202012Validator:
    text = (files("wheeltapper.report") / "schema" / f"{name}.json").read_text(encoding="utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


@pytest.mark.skipif(SHARED is None, reason="the labelled records (../shared/runs) are not on this machine")
@pytest.mark.parametrize("path", RECORDS, ids=lambda p: p.name)
def test_every_report_of_a_real_record(path: Path) -> None:
    diagnoses = api.diagnose(path)
    runs = [d.run for d in diagnoses]
    validator("diagnosis").validate(json.loads(json_out.dumps(json_out.diagnoses_object(diagnoses))))
    validator("show").validate(json.loads(json_out.dumps(json_out.show_object(runs, values=False))))
    views = [view_of(d, charts=True) for d in diagnoses]
    for picture in re.findall(r"<svg.*?</svg>", html.page(views), re.DOTALL):
        ElementTree.fromstring(picture)
    assert markdown.render(views)
    screen = io.StringIO()
    print_diagnoses(views, console(screen, width=80))
    print_runs(runs, console(screen, width=80))
    assert max(len(line) for line in screen.getvalue().splitlines()) <= 80
