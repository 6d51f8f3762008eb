"""What decides whether a fault did harm, and how the score is counted; no training here."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from wheeltapper.lab.manifest import compare
from wheeltapper.lab.score import Case, confusion, leave_one_out, summary
from wheeltapper.lab.tell import as_json, as_text
from wheeltapper.lab.truth import Truth, load, load_all, run_name, save


def truth(**more: object) -> Truth:
    base = {"run": "run-1", "system": "sr-nano", "size": "test", "seed": 1, "settings": {}, "kind": "fault"}
    return Truth(**{**base, "score": 30.0, "reported": 30.0, "seconds": 5.0, **more})  # type: ignore[arg-type]


HEALTHY = truth(kind="healthy")


@pytest.mark.parametrize(
    ("run", "harmed", "words"),
    [
        (truth(), False, "no harm"),
        (truth(score=29.5, reported=29.5), False, "no harm"),
        (truth(score=28.0, reported=28.0), True, "final score 28 against 30"),
        (truth(score=math.nan, reported=math.nan), True, "final score"),
        (truth(score=30.0, reported=12.0), True, "reports 12"),
        (truth(score=None, ended="crashed: ValueError: x"), True, "ValueError"),
        (truth(harm="time", seconds=9.0), True, "9.0 CPU s against 5.0"),
        (truth(harm="quality", seconds=9.0), False, "no harm"),
        (truth(harm="memory", memory=200.0), True, "memory grew"),
        (truth(harm="nothing", memory=200.0), False, "not what it does"),  # a resume in one process keeps both launches
        (truth(harm="nothing"), False, "not what it does"),
    ],
)
def test_harm_is_measured_against_the_twin(run: Truth, harmed: bool, words: str) -> None:
    found, said = compare(run, HEALTHY, noise=0.2)
    assert found is harmed
    assert words in said


def test_a_metric_that_its_twin_misreports_too_is_not_the_faults_doing() -> None:
    twin = truth(kind="healthy", reported=12.0)
    assert compare(truth(reported=12.0), twin, noise=0.2)[0] is False


def test_truth_survives_the_disk(tmp_path: Path) -> None:
    one = truth(fault="ema-horizon", cause="ema-horizon-too-long", onset=12.0, good=0.9, bad=0.999)
    save(tmp_path, one)
    assert load(tmp_path / "truth" / "run-1.json") == one
    assert load_all(tmp_path) == [one]


def test_a_run_is_named_by_what_it_is_and_not_after_it() -> None:
    a = run_name("sr-nano", "test", 1, "ema-horizon", {"lr": 1})
    assert a == run_name("sr-nano", "test", 1, "ema-horizon", {"lr": 1})
    assert a != run_name("sr-nano", "test", 1, "ema-horizon", {"lr": 2})
    assert a != run_name("sr-nano", "test", 1, None, {"lr": 1})
    assert "ema" not in a


def case(kind: str, verdict: str, *causes: tuple[str, float], **more: object) -> Case:
    onset = more.pop("said_onset", None)
    facts = {"kind": kind, "cause": "lr-too-high" if kind == "fault" else None, "manifested": True, **more}
    return Case(truth(**facts), verdict, causes, onset, 1)  # type: ignore[arg-type]


CASES = [
    case("fault", "ill", ("lr-too-high", 0.9), ("no-warmup", 0.1), onset=100.0, length=1000, said_onset=150.0),
    case("fault", "ill", ("no-warmup", 0.6), ("lr-too-high", 0.4)),
    case("fault", "sound"),
    case("fault", "ill", ("lr-too-low", 0.7), manifested=False),
    case("healthy", "sound"),
    case("healthy", "cannot-tell"),
    case("benign", "ill", ("overfitting", 0.5), fault="mixup-inversion", system="resnet-ddp"),
    case("benign", "sound", system="resnet-ddp"),
]


def test_the_summary_counts_what_it_says() -> None:
    figures = summary(CASES)
    assert figures["harmed"] == 3
    assert figures["detected"] == pytest.approx(2 / 3)
    assert figures["top1"] == pytest.approx(1 / 3)
    assert figures["top3"] == pytest.approx(2 / 3)
    assert figures["false_alarms_healthy"] == 0
    assert figures["false_alarms_benign"] == 0.5
    assert figures["unharmed"] == 1
    assert figures["cannot_tell"] == pytest.approx(1 / 8)
    assert figures["onset_error_median"] == pytest.approx(0.05)
    assert [(row["runs"], row["right"]) for row in figures["calibration"]] == [(1, 0.0), (1, 1.0)]


def test_a_cause_in_other_words_is_as_right() -> None:
    said = case("fault", "ill", ("overfitting", 0.7), also=("overfitting",), cause="data-repeated")
    assert said.rank() == 1


def test_confusion_names_the_wrong_ones_only() -> None:
    assert set(confusion(CASES)) == {
        ("lr-too-high", "no-warmup", 1),
        ("lr-too-high", "sound", 1),
        ("benign mixup-inversion", "overfitting", 1),
    }


def test_leave_one_out_never_tests_on_what_it_fits() -> None:
    for name, (fit, test) in leave_one_out(CASES).items():
        assert {c.truth.system for c in test} == {name}
        assert name not in {c.truth.system for c in fit}
        assert len(fit) + len(test) == len(CASES)


def test_the_score_is_told_in_words_and_json() -> None:
    text = as_text(CASES, misses=True)
    assert "66.7% of    3" in text
    assert "benign mixup-inversion" in text
    assert "resnet-ddp" in text
    told = as_json(CASES)
    assert told["all"]["harmed"] == 3
    assert set(told["systems"]) == {"resnet-ddp", "sr-nano"}
    assert len(told["cases"]) == len(CASES)


def test_a_set_without_runs_has_no_figures_and_no_crash() -> None:
    assert summary([])["detected"] is None
    assert "-" in as_text([])
