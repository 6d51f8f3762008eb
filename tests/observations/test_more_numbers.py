"""Numbers of resumes, early stopping, parts, exploration and kinds: what they are on curves whose answer is known."""

from __future__ import annotations

import dataclasses

import pytest

from wheeltapper.finding import Unknown
from wheeltapper.observations import Reading, observations
from wheeltapper.run.model import Run, Segment
from wheeltapper.study import Study
from wheeltapper.testing import make_run

BY_ID = {o.id: o for o in observations()}
FALLING = [2.0 * 0.93**i for i in range(40)]


def read(id_: str, run: Run) -> Reading | Unknown:
    answer: Reading | Unknown = Study(run).call(BY_ID[id_].observe)
    return answer


def resumed(values: list[float], at: int) -> Run:
    run = make_run({"train_loss": values})
    first = Segment(0, "step", 0.0, float(at - 1), "first", "made.log", 1, "begins")
    again = Segment(1, "step", float(at), float(len(values) - 1), "resume", "made.log", at + 1, "resumed")
    return dataclasses.replace(run, segments=(first, again))


@pytest.mark.parametrize(("values", "low", "high"), [(FALLING, -0.1, 0.1), (FALLING[:20] + FALLING[:20], 0.8, 1.2)])
def test_a_resume_goes_on_or_begins_again(values: list[float], low: float, high: float) -> None:
    found = read("resume-step-back", resumed(values, 20))
    assert isinstance(found, Reading)
    assert low < found.value < high
    assert found.onset == 20


EARLY = "epochs: 60\nearly_stopping:\n  patience: 8\n  mode: {mode}\n  monitor: val_rmse\n"


def test_early_stopping_that_waits_for_the_wrong_end_stops_at_the_best() -> None:
    wrong = make_run({"val_rmse": FALLING[:9]}, clock="epoch", config=EARLY.format(mode="max"))
    found = read("stopped-against-patience", wrong)
    assert isinstance(found, Reading)
    assert found.value == 0
    assert [c.cause for c in Study(wrong).get("contradictions")] == ["early-stop-wrong-mode"]
    right = make_run({"val_rmse": FALLING[:12] + [FALLING[11] * 1.01] * 8}, clock="epoch", config=EARLY.format(mode="min"))
    found = read("stopped-against-patience", right)
    assert isinstance(found, Reading)
    assert found.value == 1
    assert Study(right).get("contradictions") == ()


def test_a_head_that_does_not_move_while_the_others_do() -> None:
    rising = [1 - 0.8 * 0.9**i for i in range(30)]
    stuck = make_run({"val/acc_shape": rising, "val/acc_color": rising, "val/acc_kind": [0.17] * 30})
    found = read("part-stuck", stuck)
    assert isinstance(found, Reading)
    assert found.value == pytest.approx(0.0, abs=0.01)
    assert "kind" in found.text
    whole = make_run({"val/acc_shape": rising, "val/acc_color": rising, "val/acc_kind": rising[5:] + rising[-5:]})
    found = read("part-stuck", whole)
    assert isinstance(found, Reading)
    assert found.value > 0.5


def test_exploration_at_the_end() -> None:
    falls = make_run({"epsilon": [max(0.05, 1 - 0.05 * i) for i in range(30)], "episode_reward": [float(i) for i in range(30)]})
    stays = make_run({"epsilon": [0.99] * 30, "episode_reward": [1.0] * 30})
    assert [round(r.value, 2) for run in (falls, stays) if isinstance(r := read("exploration-level", run), Reading)] == [0.05, 0.99]


@pytest.mark.parametrize(
    ("names", "kind"), [(("train_loss", "val_acc"), 1.0), (("train_loss", "val_ppl"), 2.0), (("reward", "policy_loss"), 6.0), (("d_loss", "g_loss"), 5.0)]
)
def test_the_kind_of_training_is_what_is_logged(names: tuple[str, str], kind: float) -> None:
    found = read("kind-of-training", make_run(dict.fromkeys(names, FALLING)))
    assert isinstance(found, Reading)
    assert found.value == kind
