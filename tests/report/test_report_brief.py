"""JSON for machines: sizes that are kept, fields that are picked, errors that a program can read."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.errors import InputError
from wheeltapper.report.brief import MOST_CHECK, MOST_RUN, brief, briefs_object, check_within, only, size_of
from wheeltapper.report.json_out import check_object, dumps

CASES = Path(__file__).resolve().parents[2] / "examples" / "cases"
RUNS = ("000-edm-prior", "001-sr-degradation", "003-sedd-curriculum", "004-imagenet-onecycle")


def schema(name: str) -> dict[str, object]:
    out: dict[str, object] = json.loads((files("wheeltapper.report") / "schema" / f"{name}.json").read_text())
    return out


@pytest.mark.parametrize("name", RUNS)
def test_a_brief_run_is_short_and_as_its_schema_says(name: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    told = briefs_object(api.diagnose(CASES / name))
    jsonschema.validate(json.loads(dumps(told)), schema("brief"))
    assert all(size_of(run) <= MOST_RUN for run in told["runs"])
    assert told["runs"][0]["causes"][0]["evidence"]


def test_a_run_with_long_names_is_still_short() -> None:
    from dataclasses import replace

    d = api.diagnose(CASES / RUNS[3])[0]
    run = replace(d.run, name="ü" * 5000, root="/r" * 5000)
    long = replace(
        d,
        run=run,
        headline="h" * 5000,
        todo=("t" * 900,) * 9,
        findings=tuple(replace(f, id="x" * 90, series="s" * 300) for f in d.findings),
    )
    told = brief(long)
    assert size_of(told) <= MOST_RUN
    assert "signs" in told["left_out"]
    assert told["verdict"] == "ill"
    assert told["causes"]


def test_a_check_stays_below_its_size_and_says_what_it_left_out() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    report = api.check(CASES / RUNS[0])
    whole = check_object(report)
    many = {
        **whole,
        "findings": [dict(f, places=f["places"] * 9) for f in whole["findings"]] * 300,
        "files": ["f" * 100] * 2000,
        "notes": ["n" * 80] * 500,
    }
    told = check_within(many)
    assert size_of(told) <= MOST_CHECK
    assert told["left_out"]["findings"] > 0
    assert told["left_out"]["files"] > 0
    jsonschema.validate(json.loads(dumps(told)), schema("check"))


def test_a_planned_rate_is_thinned_at_named_ticks() -> None:
    told = check_within(check_object(api.check(CASES / RUNS[1])))["plan"]
    assert told is not None
    assert len(told["lr"]) == len(told["lr_at"]) <= 200
    assert {20_000, 30_000} <= set(told["lr_at"])  # the cuts are kept


def test_fields_pick_and_refuse() -> None:
    told = briefs_object(api.diagnose(CASES / RUNS[0]))
    picked = only(told, "verdict, causes.id")
    assert picked["runs"] == [{"verdict": "ill", "causes": [{"id": c["id"]} for c in told["runs"][0]["causes"]]}]
    assert picked["schema"] == "wheeltapper/brief"
    with pytest.raises(InputError, match="no field"):
        only(told, "nothing")


def test_the_commands_take_these_options(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(CASES / RUNS[0])
    assert main(["diagnose", run, "--json", "--brief", "--fields", "name,verdict", "--exit-zero"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == [{"name": RUNS[0], "verdict": "ill"}]
    assert main(["check", run, "--json", "--fields", "findings.id", "--exit-zero"]) == 0
    assert {"id": "accumulation-not-implemented"} in json.loads(capsys.readouterr().out)["findings"]
    assert main(["show", run, "--json", "--no-values", "--fields", "series.name"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == [{"series": [{"name": "train/loss"}]}]
    assert main(["check", run, "--json", "--full", "--exit-zero"]) == 0
    assert "left_out" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("words", [["diagnose", "/nowhere"], ["show", "/nowhere"], ["explain", "nothing-of-the-kind"]])
def test_errors_as_json_on_request(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "--json-errors"]) == 2
    out, err = capsys.readouterr()
    told = json.loads(err)
    assert out == ""
    assert told["schema"] == "wheeltapper/error"
    assert told["error"]["what"]
    assert told["error"]["do"]


def test_a_call_that_does_not_fit_is_told_as_json_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["diagnose", "--json-errors"])
    assert ended.value.code == 2
    assert json.loads(capsys.readouterr().err)["error"]["kind"] == "usage"
    with pytest.raises(SystemExit):
        main(["diagnose"])
    assert "usage:" in capsys.readouterr().err
