"""Columns, filters, groups, exports, and what a sweep says."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from made_fleet import fleet_at
from wheeltapper.cli.main import main
from wheeltapper.errors import InputError
from wheeltapper.fleet.export import as_csv
from wheeltapper.fleet.row import Row
from wheeltapper.fleet.scan import Member
from wheeltapper.fleet.sweep import sweep_of
from wheeltapper.fleet.table import grouped, matching, ordered
from wheeltapper.fleet.units import Unit

UNIT = Unit(Path("/runs"), ())


def member(name: str, p_ill: float = 0.5, score: float | None = None, **settings: str | float) -> Member:
    verdict = "ill" if p_ill >= 0.9 else "sound" if p_ill < 0.05 else "cannot-tell"
    row = Row(name, name, verdict, verdict, p_ill, f"about {name}", cause="lr-too-high" if verdict == "ill" else "",
              score_name="val/accuracy" if score is not None else "", score=score, better="up", settings=settings)  # fmt: skip
    return Member(row, UNIT, f"/runs/{name}", 0, name, name)


RUNS = [
    member("a", 0.99, 0.2, **{"optimizer.lr": 1.0, "optimizer.name": "sgd"}),
    member("b", 0.01, 0.9, **{"optimizer.lr": 0.001, "optimizer.name": "adamw"}),
    member("c", 0.5, None, **{"optimizer.name": "adamw"}),
]


def names(members: list[Member]) -> str:
    return "".join(m.label for m in members)


@pytest.mark.parametrize(
    ("by", "order"), [(None, "acb"), ("score", "abc"), ("-score", "bac"), ("-optimizer.lr", "abc"), ("name", "abc")]
)
def test_sorting_puts_what_has_no_value_last(by: str | None, order: str) -> None:
    assert names(ordered(RUNS, by)) == order


@pytest.mark.parametrize(
    ("test", "left"),
    [("p_ill>0.5", "a"), ("p_ill>=0.5", "ac"), ("verdict=cannot tell", "c"), ("verdict!=ill", "bc"), ("optimizer.lr<0.1", "b"),
     ("cause~rate", ""), ("cause~lr", "a"), ("about b", "b"), ("optimizer.name=adamw", "bc"), ("", "abc")],
)  # fmt: skip
def test_filters(test: str, left: str) -> None:
    assert names(matching(RUNS, [test])) == left


def test_a_column_that_does_not_exist_names_near_ones() -> None:
    with pytest.raises(InputError, match=r"optimizer\.lr"):
        ordered(RUNS, "optimzer.lr")
    with pytest.raises(InputError, match="no number"):
        matching(RUNS, ["p_ill>much"])


def test_groups_count_verdicts() -> None:
    sgd, adamw = grouped(RUNS, "optimizer.name")
    assert (sgd.value, sgd.n, sgd.ill, sgd.cause) == ("sgd", 1, 1, "lr-too-high")
    assert (adamw.n, adamw.sound, adamw.cannot_tell, adamw.best) == (2, 1, 1, 0.9)


def test_a_cell_is_no_formula() -> None:
    hostile = replace(RUNS[0], label='=HYPERLINK("x")')
    row = next(csv.DictReader(io.StringIO(as_csv([hostile]))))
    assert row["name"].startswith("'=")
    assert row["set:optimizer.lr"] == "1.0"


def test_parquet_is_read_back(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    from wheeltapper.fleet.export import write_parquet

    write_parquet(RUNS, tmp_path / "runs.parquet")
    table = parquet.read_table(tmp_path / "runs.parquet").to_pydict()
    assert table["name"] == ["a", "b", "c"]
    assert table["set:optimizer.lr"] == [1.0, 0.001, None]


def made_sweep(n: int, effect: bool, seed: int) -> list[Member]:
    random = np.random.default_rng(seed)
    out = []
    for k in range(n):
        rate = float(random.choice([0.001, 0.01, 1.0]))
        ill = rate == 1.0 if effect else random.random() < 0.3
        noise = {f"k{j}": float(random.choice([1, 2, 3])) for j in range(20)}
        out.append(member(f"r{k}", 0.99 if ill else 0.01, float(random.random()), **{"optimizer.lr": rate, "twin": rate * 2, **noise}))
    return out


def test_a_sweep_finds_the_setting_that_matters_and_says_what_moved_with_it() -> None:
    found = sweep_of(made_sweep(60, True, 1))
    assert found.illness[0].setting == "optimizer.lr + twin"
    assert [link.setting for link in found.illness if link.holds] == ["optimizer.lr + twin"]
    assert "Always changed together" in " ".join(found.notes)


def test_many_looks_at_nothing_claim_nothing() -> None:
    claims = sum(any(link.holds for link in sweep_of(made_sweep(40, False, seed)).illness) for seed in range(30))
    assert claims <= 4  # 5 % of 30 is 1.5; more than 4 has a chance of 2 %


def test_a_sweep_in_which_nothing_varies_says_so() -> None:
    assert "no setting varies" in sweep_of([member(f"r{k}", 0.99) for k in range(20)]).headline


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    fleet_at(tmp_path / "runs", 7)
    runs = str(tmp_path / "runs")
    code = main(["diagnose", runs])
    out = capsys.readouterr().out
    assert out.startswith("7 runs: ")
    assert code in (1, 3)
    assert out.index("ILL") < out.index("run-00000") or "ILL" not in out
    assert main(["diagnose", runs, "--group", "optimizer.name", "--exit-zero"]) == 0
    assert "sgd" in capsys.readouterr().out
    assert main(["diagnose", runs, "--filter", "nothing=1"]) == 2
    assert "no column and no setting" in capsys.readouterr().err
    assert main(["diagnose", runs, "--csv", str(tmp_path / "runs.csv"), "--exit-zero"]) == 0
    assert len((tmp_path / "runs.csv").read_text().splitlines()) == 8
    assert main(["sweep", runs]) == 0
    assert "7 runs" in capsys.readouterr().out
