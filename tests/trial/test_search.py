"""Delta debugging and bisection: right answers, few questions, and honest where runs are noisy."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trial_toy import FakeEngine, toy_log, toy_run

from wheeltapper import api
from wheeltapper.errors import InputError
from wheeltapper.trial.arms import Wish
from wheeltapper.trial.engines import Job
from wheeltapper.trial.hunt import hunt_commit, hunt_settings
from wheeltapper.trial.search import bisect, commits_between, ddmin

COMMAND = "python train.py --config {config} --out {out}"


@settings(max_examples=80, deadline=None)
@given(n=st.integers(1, 24), culprits=st.sets(st.integers(0, 23), min_size=1, max_size=3))
def test_ddmin_finds_exactly_the_culprits(n: int, culprits: set[int]) -> None:
    guilty = {c % n for c in culprits}
    asked = []

    def fails(part: tuple[int, ...]) -> bool:
        asked.append(part)
        return guilty <= set(part)

    assert set(ddmin(range(n), fails)) == guilty
    assert len(asked) <= n * n + 3 * n


@pytest.mark.parametrize("error", [0.0, 0.05, 0.1])
def test_bisect_is_right_as_often_as_it_says(error: float) -> None:
    rng = random.Random(2)
    right = runs = 0
    for _ in range(60):
        culprit = rng.randrange(50)

        def broke(at: int, _time: int, culprit: int = culprit) -> bool:
            return (at >= culprit) != (rng.random() < error)

        found = bisect(50, broke)
        right += found.at == culprit
        runs += found.runs
    assert right >= (60 if error == 0 else 54)
    assert runs / 60 < 25


def test_bisect_goes_around_what_cannot_be_run() -> None:
    found = bisect(20, lambda at, _time: None if at in (9, 10) else at >= 13)
    assert found.at == 13


def good_and_bad(tmp_path: Path) -> tuple[Path, Path]:
    bad, good = toy_run(tmp_path / "bad", lr=2.3), toy_run(tmp_path / "good", lr=0.4)
    text = (good / "config.yaml").read_text(encoding="utf-8")
    text = text.replace("weight_decay: 0.0", "weight_decay: 0.001").replace("warmup_steps: 20", "warmup_steps: 25")
    (good / "config.yaml").write_text(text, encoding="utf-8")
    return bad, good


def test_the_setting_that_did_it_is_found(tmp_path: Path) -> None:
    bad, good = good_and_bad(tmp_path)
    plan, found = api.plan_search(bad, COMMAND, Wish(), good=good)
    assert found is not None
    assert {edit.knob for edit in found.edits} == {"optimizer.lr", "optimizer.weight_decay", "schedule.warmup"}
    engine = FakeEngine()
    answer = hunt_settings(plan, found.edits, tmp_path / "t", engine)
    assert answer.culprits == ("optimizer.lr",)
    again = FakeEngine()
    assert hunt_settings(plan, found.edits, tmp_path / "t", again).culprits == ("optimizer.lr",)
    assert again.jobs == [], "what has run is not run again"


def test_a_noisy_oracle_is_asked_until_it_is_sure(tmp_path: Path) -> None:
    bad, good = good_and_bad(tmp_path)
    plan, found = api.plan_search(bad, COMMAND, Wish(), good=good)
    assert found is not None
    rng = random.Random(3)

    def moody(_job: Job, o: dict[str, float]) -> tuple[int | None, str]:
        lr = o["lr"] if rng.random() > 0.1 else (0.4 if o["lr"] > 2 else 2.3)
        return 0, toy_log(lr, int(o["seed"]))

    answer = hunt_settings(plan, found.edits, tmp_path / "t", FakeEngine(moody))
    assert "optimizer.lr" in answer.culprits


def test_ends_that_do_not_differ_are_told(tmp_path: Path) -> None:
    bad, good = good_and_bad(tmp_path)
    plan, found = api.plan_search(bad, COMMAND, Wish(), good=good)
    assert found is not None
    with pytest.raises(InputError, match="good end breaks as well"):
        hunt_settings(plan, found.edits, tmp_path / "a", FakeEngine(lambda _, o: (0, toy_log(2.3, int(o["seed"])))))
    with pytest.raises(InputError, match="does not break"):
        hunt_settings(plan, found.edits, tmp_path / "b", FakeEngine(lambda _, o: (0, toy_log(0.4, int(o["seed"])))))


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), "-c", "user.name=t", "-c", "user.email=t@t", *args],
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_the_commit_that_did_it_is_found(tmp_path: Path) -> None:
    run = toy_run(tmp_path / "exp1", lr=2.3)
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    for i in range(7):
        (repo / "rate.txt").write_text("0.5" if i < 4 else "2.3")
        (repo / "n.txt").write_text(str(i))
        git(repo, "add", ".")
        git(repo, "commit", "-qm", f"change {i}")
    first = git(repo, "rev-list", "--max-parents=0", "HEAD")

    def by_code(job: Job, o: dict[str, float]) -> tuple[int | None, str]:
        return 0, toy_log(float((Path(job.cwd) / "rate.txt").read_text()), int(o["seed"]))

    plan, _ = api.plan_search(run, COMMAND, Wish(cwd=str(repo), config=str(run / "config.yaml")))
    good, commits = commits_between(f"{first}..HEAD", repo)
    assert len(commits) == 6
    answer = hunt_commit(plan, good, commits, tmp_path / "t", FakeEngine(by_code))
    assert answer.culprits == (commits[3],)
    assert "change 4" in answer.text
    assert git(repo, "worktree", "list").count("\n") == 0, "no work tree is left"
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("span", ["HEAD", "a..", "HEAD..HEAD"])
def test_spans_that_say_nothing_are_refused(tmp_path: Path, span: str) -> None:
    git(tmp_path, "init", "-q")
    (tmp_path / "x").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    with pytest.raises(InputError):
        commits_between(span, tmp_path)
