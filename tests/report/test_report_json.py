from __future__ import annotations

import json
from importlib.resources import files

import jsonschema
import numpy as np
import pytest

from report_sample import sample_diagnosis, sample_forecast, sample_run, series
from wheeltapper.finding import Unknown
from wheeltapper.report import json_out
from wheeltapper.run.model import Run


def schema(name: str) -> dict:
    return json.loads((files("wheeltapper.report") / "schema" / f"{name}.json").read_text(encoding="utf-8"))


def strict(text: str) -> dict:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


@pytest.mark.parametrize("name", ["diagnosis", "show"])
def test_the_schema_itself_is_valid(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema(name))


def test_a_full_diagnosis_fits_its_schema() -> None:
    out = strict(json_out.dumps(json_out.diagnoses_object([sample_diagnosis()])))
    jsonschema.validate(out, schema("diagnosis"))
    run = out["runs"][0]
    assert out["schema"] == "wheeltapper/diagnosis"
    assert run["verdict"] == "ill"
    assert run["signs"][0]["onset"] == 10000
    assert run["signs"][1]["numbers"]["first"] == "NaN"
    assert [c["id"] for c in run["causes"]] == ["learning-rate-too-high", "something-else"]
    assert run["remedies"][0]["cause"] == "learning-rate-too-high"
    assert run["remedies"][0]["edits"][1] == {"knob": "clip.norm", "old": None, "new": 1.0, "why": ""}


def test_an_empty_diagnosis_fits_its_schema() -> None:
    bare = sample_diagnosis(
        run=Run("r", ".", (), {}), verdict="cannot-tell", findings=(), causes=(), best=None, validity=()
    )
    jsonschema.validate(strict(json_out.dumps(json_out.diagnoses_object([bare]))), schema("diagnosis"))


def test_show_fits_its_schema_and_keeps_what_is_not_finite() -> None:
    values = [1.0, float("nan"), float("inf"), float("-inf")]
    run = Run("r", ".", (), {"a": series("a", values, clocks={"epoch": np.array([0, 1, 2, np.nan])})})
    out = strict(json_out.dumps(json_out.show_object([run, sample_run()])))
    jsonschema.validate(out, schema("show"))
    first = out["runs"][0]["series"][0]
    assert first["values"] == [1.0, "NaN", "Infinity", "-Infinity"]
    assert first["clocks"]["epoch"][-1] == "NaN"
    assert (first["n"], first["n_not_finite"], first["max"]) == (4, 3, 1.0)


def test_a_field_that_the_schema_does_not_know_is_refused() -> None:
    out = json_out.plain(json_out.diagnoses_object([sample_diagnosis()]))
    out["runs"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(out, schema("diagnosis"))


def test_plain_makes_anything_json() -> None:
    odd = {1: {2, 3}, "a": (np.float32(1.5), np.int64(3), np.bool_(True)), "big": 10**40, "s": "\ud800"}
    out = strict(json_out.dumps(odd))
    assert out["a"] == [1.5, 3, True]
    assert out["big"] == str(10**40)
    assert out["s"] == "?"


@pytest.mark.parametrize("prognosis", [None, sample_forecast(), Unknown("too short", ("evaluations",))])
def test_a_prognosis_fits_the_schema(prognosis: object) -> None:
    out = strict(json_out.dumps(json_out.diagnoses_object([sample_diagnosis(prognosis=prognosis)])))
    jsonschema.validate(out, schema("diagnosis"))
    assert (out["runs"][0]["prognosis"] is None) == (prognosis is None)
