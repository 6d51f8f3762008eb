"""What `fix`, `followup` and `lessons` write is what schema/*.json describes: on real output, files included."""

from __future__ import annotations

import json
import shutil
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from wheeltapper.cli.main import main
from wheeltapper.report.json_fix import SCHEMAS, schema_of

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RUNS = [EXAMPLES / "collapsed", *sorted(p for p in (EXAMPLES / "cases").iterdir() if p.is_dir())]


def on_disk(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((files("wheeltapper.report") / "schema" / f"{name}.json").read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_schema_on_disk_is_that_of_the_types(name: str) -> None:
    """If this fails: python -m wheeltapper.report.json_fix."""
    assert on_disk(name) == json.loads(json.dumps(schema_of(name)))
    jsonschema.Draft202012Validator.check_schema(on_disk(name))


@pytest.mark.parametrize("run", RUNS, ids=lambda p: p.name)
def test_fix_fits_its_schema(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fix", str(run), "--dry-run", "--json"]) in (0, 1, 3)
    told = json.loads(capsys.readouterr().out)
    jsonschema.validate(told, on_disk("fix"))
    ways = ["A", "B", "C"] if told["verdict"] == "ill" else []
    assert [option["letter"] for option in told["options"]] == ways


def test_followup_lessons_plan_and_case_fit_theirs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run, out = EXAMPLES / "collapsed", tmp_path / "out"
    assert main(["fix", str(run), "-o", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [Path(p).name for p in told["written"]] == ["args.yaml", "plan.yaml", "fix.patch", "fix.md", "fix.html"]
    new = Path(shutil.copytree(run, tmp_path / "new"))
    shutil.copy(out / "args.yaml", new / "args.yaml")
    assert main(["followup", str(new), "--plan", str(out), "--json"]) == 1
    jsonschema.validate(json.loads(capsys.readouterr().out), on_disk("followup"))
    assert main(["lessons", str(out), "--json"]) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), on_disk("lessons"))
    jsonschema.validate(json.loads((out / "case.json").read_text()), on_disk("case"))
    plan = yaml.safe_load((out / "plan.yaml").read_text())
    jsonschema.validate(plan, on_disk("plan"))
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**plan, "expectd": []}, on_disk("plan"))
