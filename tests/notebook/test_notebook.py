"""Objects in a notebook: short, a card, plain data, tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import wheeltapper
from made_fleet import write_run
from wheeltapper import notebook

CASE = Path(__file__).resolve().parents[2] / "examples" / "cases" / "004-imagenet-onecycle"


@pytest.fixture(scope="module")
def diagnosis() -> Any:
    return wheeltapper.diagnose(CASE)[0]


def test_reprs_are_short(diagnosis: Any) -> None:
    assert repr(diagnosis.run).startswith("<Run 004-imagenet-onecycle: ")
    assert len(repr(diagnosis.run)) < 200
    assert repr(wheeltapper.fix(CASE)).startswith("<Fix of 004-imagenet-onecycle: ")


def test_names_in_a_card_are_only_text(tmp_path: Path) -> None:
    write_run(tmp_path / "<script>alert(1)</script>", 3)
    found = wheeltapper.diagnose(tmp_path)[0]
    for card in (found.run._repr_html_(), notebook.FACES["Diagnosis"].card(found), wheeltapper.fix(tmp_path)._repr_html_()):
        assert card is not None
        assert "<script" not in card


def test_dicts_are_plain_json(diagnosis: Any) -> None:
    told = json.loads(json.dumps(notebook.to_dict(diagnosis), allow_nan=False))
    assert told["verdict"] == "ill"
    run = json.loads(json.dumps(diagnosis.run.to_dict(), allow_nan=False))
    assert "val/accuracy" in [series["name"] for series in run["series"]]
    assert wheeltapper.fix(CASE).to_dict()["run"] == "004-imagenet-onecycle"


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables(diagnosis: Any, library: str) -> None:
    pytest.importorskip(library, reason=f"needs {library}")
    to = getattr(notebook, f"to_{library}")
    points = to(diagnosis.run)
    assert len(points) == sum(len(series) for series in diagnosis.run.series.values())
    assert next(iter(to(diagnosis)["cause"])) == diagnosis.causes[0].id
    assert list(to([diagnosis, diagnosis])["verdict"]) == ["ill", "ill"]


def test_the_magic(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("IPython", reason="needs IPython")
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "wheeltapper")
    cards = shell.run_line_magic("wheeltapper", str(CASE))
    shown, _ = shell.display_formatter.format(cards)
    assert "average of the weights" in shown["text/html"]
    assert "004-imagenet" in shell.display_formatter.format(cards[0])[0]["text/html"]
    shell.run_line_magic("wheeltapper", "nowhere/at/all")
    assert "there is no file or folder" in capsys.readouterr().out
    shell.run_line_magic("wheeltapper", f"diagnose {CASE} --brief")
    assert "ILL" in capsys.readouterr().out
