"""The answers of the server without a client: right, short, and only about what may be read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from wheeltapper.errors import InputError
from wheeltapper.mcp import desk_settings
from wheeltapper.mcp.desk import Desk
from wheeltapper.mcp.roots import Roots
from wheeltapper.mcp.short import MOST, fitted
from wheeltapper.report.brief import kept, size_of


@pytest.fixture
def desk(allowed: Path) -> Desk:
    return Desk(Roots.of([str(allowed)]))


def test_runs_are_listed_page_by_page(desk: Desk) -> None:
    assert [r["run"] for r in desk.list_runs()["runs"]] == ["good", "spiky"]
    first = desk.list_runs(limit=1)
    assert first["more"] == [{"tool": "list_runs", "arguments": {"folder": "", "offset": 1, "limit": 1}}]
    assert [r["run"] for r in desk.list_runs(offset=1)["runs"]] == ["spiky"]


@pytest.mark.parametrize(
    "name", ["../private", "/etc", "good/../../private", "~", "\0", "good\0", "x" * 5000, "", "..", "good/nothing"]
)
def test_what_is_outside_or_nowhere_is_refused(desk: Desk, name: str) -> None:
    if name == "":
        return  # the root itself holds two runs: the next test
    with pytest.raises(InputError) as error:
        desk.show(name)
    assert error.value.do


def test_a_folder_of_several_runs_asks_which(desk: Desk) -> None:
    with pytest.raises(InputError) as error:
        desk.diagnose(".")
    assert ".#NAME" in (error.value.do or "")
    assert desk.diagnose(".#good")["name"] == "good"


def test_a_link_out_of_the_roots_is_refused(desk: Desk, allowed: Path) -> None:
    os.symlink(allowed.parent / "private" / "log.jsonl", allowed / "good" / "more.jsonl")
    with pytest.raises(InputError, match="leads out"):
        desk.show("good")
    os.symlink(allowed.parent / "private", allowed / "linked")
    with pytest.raises(InputError):
        desk.show("linked")


def test_a_thinned_curve_keeps_its_spike(desk: Desk) -> None:
    told = desk.curve("spiky", "train/loss", points=20)
    assert len(told["points"]) <= 24
    assert max(value for _, value in told["points"]) > 50
    assert [at for at, value in told["points"] if value > 50] == [203.0]


def test_what_is_kept_of_a_curve_has_every_extreme_of_its_stretches() -> None:
    values = np.sin(np.arange(10_000) / 300)
    values[777], values[5000] = 40.0, np.nan
    index = kept(values, 40)
    assert 777 in index
    assert 5000 in index
    assert len(index) <= 45


def test_a_run_that_is_rewritten_is_read_again(desk: Desk, allowed: Path) -> None:
    before = desk.show("good")["curves"][0]["n"]
    log = allowed / "good" / "log.jsonl"
    log.write_text(log.read_text() + "\n" + json.dumps({"step": 401, "loss": 9.0, "lr": 0.001}))
    after = desk.show("good")["curves"][0]
    assert (after["n"], after["last"]) == (before + 1, 9.0)


def test_a_run_that_changes_while_it_is_read_says_so(
    desk: Desk, allowed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wheeltapper.mcp import desk as module

    real = module.audit_run

    def meanwhile(run):  # type: ignore[no-untyped-def]
        (allowed / "good" / "log.jsonl").write_text(
            '{"step": 1, "loss": 2.0}\n{"step": 2, "loss": 1.0}\n{"step": 3, "loss": 0.5}\n'
        )
        return real(run)

    monkeypatch.setattr(module, "audit_run", meanwhile)
    assert "ask again" in desk.diagnose("good")["changed"]
    monkeypatch.setattr(module, "audit_run", real)
    again = desk.show("good")
    assert "changed" not in again
    assert again["curves"][0]["n"] == 3


def test_evidence_of_what_is_not_there_names_what_is(desk: Desk) -> None:
    with pytest.raises(InputError, match="shows nothing called"):
        desk.evidence("good", "loss-scale-collapse")


def test_settings_and_what_an_edit_would_do(desk: Desk) -> None:
    keys = {row["key"]: row["value"] for row in desk_settings.settings(desk, "good")["settings"]}
    assert keys["batch_size"] == 32
    told = desk_settings.simulate(desk, "good", {"learning_rate": 0.01, "batch_size": 32})
    assert told["without_effect"] == ["batch_size"]
    assert [(c["key"], c["old"], c["new"]) for c in told["changes"]] == [("learning_rate", "0.001", "0.01")]
    assert told["loads"][0]["ok"]
    with pytest.raises(InputError):
        desk_settings.simulate(desk, "good", {})


def test_nothing_is_written_unless_allowed(desk: Desk, allowed: Path) -> None:
    before = sorted(str(p) for p in allowed.rglob("*"))
    with pytest.raises(InputError, match="writes nothing"):
        desk_settings.fix(desk, "good", write_to="fixed")
    free = Desk(Roots.of([str(allowed)]), allow_write=True)
    with pytest.raises(InputError, match="outside"):
        desk_settings.fix(free, "good", write_to="../private/fixed")
    assert sorted(str(p) for p in allowed.rglob("*")) == before


def test_a_review_by_text_and_by_claims(desk: Desk) -> None:
    told = desk_settings.review(desk, "good", text="Training loss ends at 7.7. The batch size is 32.")
    assert (told["counts"]["contradicted"], told["counts"]["supported"]) == (1, 1)
    claim = {"kind": "setting", "name": "batch_size", "value": 64}
    assert desk_settings.review(desk, "good", claims=[claim])["answers"][0]["verdict"] == "contradicted"
    for wrong in ({"claims": [{"kind": "nothing"}]}, {}, {"text": "a", "claims": []}, {"text": "x" * 300_000}):
        with pytest.raises(InputError):
            desk_settings.review(desk, "good", **wrong)


def test_every_answer_about_the_examples_is_short() -> None:
    root = Path(__file__).resolve().parents[2] / "examples" / "cases"
    desk = Desk(Roots.of([str(root)]))
    for run in ("000-edm-prior", "001-sr-degradation", "003-sedd-curriculum", "004-imagenet-onecycle"):
        d = desk.known(run).diagnosis
        answers = [
            desk.show(run),
            desk.diagnose(run),
            desk_settings.settings(desk, run),
            desk_settings.schedule(desk, run),
        ]
        answers += [desk_settings.check(desk, [run]), desk_settings.fix(desk, run)]
        answers += [desk.evidence(run, c.id) for c in d.causes if c.id != "something-else"]
        answers += [desk.curve(run, name, points=120) for name in d.run.series]
        assert max(size_of(answer) for answer in answers) <= MOST


def test_an_answer_that_is_too_long_is_shortened_and_says_so() -> None:
    out = fitted({"a": ["x" * 100] * 200, "b": "y" * 20_000}, ("a",))
    assert size_of(out) <= MOST
    assert out["left_out"]["a"] > 100
