"""What a trial says reaches the diagnosis, the reports and the exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from trial_toy import FakeEngine, toy_run

from wheeltapper import api
from wheeltapper.cli.main import main
from wheeltapper.judge.evidence import gather
from wheeltapper.judge.posterior import weigh
from wheeltapper.remedy.case_file import load_case
from wheeltapper.report.trial_pages import as_html, as_markdown, as_object
from wheeltapper.report.trial_view import trial_view
from wheeltapper.study import Study
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.driver import start_trial
from wheeltapper.trial.engines.local import LocalEngine
from wheeltapper.trial.ledger import read_ledger
from wheeltapper.trial.model import Rule, Verdict
from wheeltapper.trial.read import evidence_of, read_trial, tried

JUDGED_AS = "lr-too-high"  # what is done about it is tested here, not what the judge says

COMMAND = "python train.py --config {config} --out {out}"


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = toy_run(tmp_path_factory.mktemp("toy") / "exp1")
    wish = Wish(causes=("lr-too-high",), sets=("no-warmup:schedule.warmup=22",))
    start_trial(api.plan_trial(folder, COMMAND, wish), folder.parent / "trial_exp1", FakeEngine())
    return folder


def test_verdicts_change_the_posterior_and_say_why(run_folder: Path, tmp_path: Path) -> None:
    alone = api.diagnose(toy_run(tmp_path / "exp1"))[0]
    after = api.diagnose(run_folder)[0]
    shares = [weigh(gather(Study(d.run)), trials=t).shares["lr-too-high"] for d, t in ((alone, []), (after, [("lr-too-high", 4.2)]))]
    odds = [share / (1 - share) for share in shares]
    assert odds[1] / odds[0] == pytest.approx(2**4.2, rel=1e-6), "the judge weighs what the trial says, as strongly as it says it"
    lead = after.causes[0]
    assert lead.id == "lr-too-high"
    told = [e for e in lead.evidence if e.group == "trial"]
    assert [e.bits for e in told] == [4.2]  # log2(0.95 / 0.05)
    assert "a trial confirmed it" in told[0].text
    assert told[0].places[0].file is not None
    assert told[0].places[0].file.endswith("trial_exp1/ledger.jsonl")
    evidence = dict(tried(after.run))
    assert evidence["no-warmup"].bits < -2


def test_another_run_beside_it_is_not_touched(run_folder: Path) -> None:
    other = toy_run(run_folder.parent / "exp2")
    assert tried(api.read(other)[0]) == ()


def test_a_foreign_ledger_is_passed_over(run_folder: Path) -> None:
    odd = run_folder.parent / "trial_odd"
    odd.mkdir()
    (odd / "ledger.jsonl").write_bytes(b'00000000 {"kind": "plan"}\nnot json\n\xff\xfe')
    assert len(tried(api.read(run_folder)[0])) == 2


def test_bits_follow_from_the_error_rates() -> None:
    rule = Rule("symptom", "loss", "down", alpha=0.05, beta=0.2)
    assert evidence_of(Verdict("confirmed", "x"), rule, Path("t")).bits == 4.0
    assert evidence_of(Verdict("refuted", "x"), rule, Path("t")).bits == -2.2


def test_verdicts_reach_the_case_file(run_folder: Path, tmp_path: Path) -> None:
    for _ in range(2):  # told twice, written once
        api.trial(run_folder.parent / "trial_exp1", case=tmp_path)
    case = load_case(tmp_path)
    assert [a.what for a in case.attempts] == ["trial"]
    assert {v.cause: v.status for v in case.attempts[0].verdicts} == {
        "lr-too-high": "CONFIRMED",
        "no-warmup": "REFUTED",
    }
    assert list(case.refuted) == ["no-warmup"]
    assert "(trial)" in (tmp_path / "case.md").read_text(encoding="utf-8")


def test_the_view_shows_each_pair(run_folder: Path) -> None:
    view = trial_view(read_trial(run_folder.parent / "trial_exp1"), charts=True)
    assert view.headline == "confirmed: lr-too-high; refuted: no-warmup"
    lead = view.arms[0]
    assert lead.repeats[0].control.endswith("✗")
    assert lead.repeats[0].arm.endswith("✓")
    assert lead.chart is not None
    assert len(lead.chart.lines) == 2 * len(lead.repeats)
    assert view.control == ("control: “not-finite” in 4 of 4 runs", "A/A: 2 pairs, equal to the last bit")


def test_pages_escape_what_they_show(run_folder: Path) -> None:
    trial = read_trial(run_folder.parent / "trial_exp1")
    trial.books.abandoned["lr-too-high"] = "<script>alert(1)</script> | x"
    html, text = as_html(trial), as_markdown(trial)
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<svg" in html
    assert "<script>" not in text
    told = as_object(trial)
    assert (told["schema"], told["version"]) == ("wheeltapper/trial", "1.0")
    assert told["verdicts"]["lr-too-high"]["answer"] == "confirmed"


def test_the_report_command(run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(run_folder.parent / "trial_exp1")
    assert main(["trial", "report", folder]) == 0
    assert "CONFIRMED  lr-too-high" in capsys.readouterr().out
    page = tmp_path / "r.html"
    assert main(["trial", "report", folder, "--html", str(page)]) == 0
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_command_from_plan_to_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = toy_run(tmp_path / "exp1")
    command = f"{sys.executable} -I -S train.py --config {{config}}"
    args = ["trial", str(folder), "--cmd", command, "-o", str(tmp_path / "trial"), "--yes", "--gpus", "0"]
    assert main([*args, "--dry-run"]) == 0
    assert not (tmp_path / "trial").exists()
    assert main(args) == 0
    told = capsys.readouterr().out
    assert "does “not-finite” go away?" in told
    assert "CONFIRMED  lr-too-high" in told
    assert list((tmp_path / "trial" / "arms").glob("*/*/work")) == []


def test_runs_are_stopped_where_nothing_more_can_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control once its weights are gone, the arm once it has passed the planned length."""
    monkeypatch.setenv("TOY_PAUSE", "0.1")  # twenty seconds for all steps: time to be stopped on a busy machine
    monkeypatch.setattr("wheeltapper.trial.driver.LOOK_EVERY", 0.2)
    folder = toy_run(tmp_path / "exp1", lr=9.0)
    command = f"{sys.executable} -I -S train.py --config {{config}} --out {{out}}"
    plan = api.plan_trial(folder, command, Wish(sets=("optimizer.lr=0.5",), repeats=1))
    assert plan.cut
    books = start_trial(plan, tmp_path / "t", LocalEngine(gpus=()))
    ends = {r["job"]: r["why"] for r in read_ledger(tmp_path / "t" / "ledger.jsonl") if r["kind"] == "ended"}
    assert ends["control-s7"] in ("gone", "length")  # which of the two comes first, a busy machine decides
    assert ends["optimizer.lr=0.5-s7"] == "length"
    control, arm = books.outcomes["control"][7], books.outcomes["optimizer.lr=0.5"][7]
    assert control.broke
    assert not arm.broke
    assert max(at for at, _ in arm.curve) <= plan.length < arm.steps < 200


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["RUN"], "how it is started is not known"),
        (["RUN", "extra", "--cmd", "x"], "too many"),
        (["resume", "RUN"], "holds no trial"),
        (["report", "RUN"], "holds no trial"),
        (["RUN", "--cmd", "t {out} 'x"], "open quote"),
        (["RUN", "--cmd", COMMAND, "--engine", "cloud", "--yes"], "no engine"),
        (["RUN", "--cmd", COMMAND], "nobody is there to agree"),
    ],
)
def test_wrong_input_is_told_plainly(
    run_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["trial", *(str(run_folder) if a == "RUN" else a for a in args)]) == 2
    assert told in capsys.readouterr().err
