"""The checkpoint to keep: the best by a level, not by one lucky episode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wheeltapper.finding import Finding
from wheeltapper.judge.best import best_checkpoint
from wheeltapper.judge.model import MetricVerdict
from wheeltapper.run.model import Checkpoint
from wheeltapper.study import Study
from wheeltapper.testing import make_run

RNG = np.random.default_rng(0)


def test_one_lucky_episode_is_not_the_best() -> None:
    level = np.concatenate([np.linspace(0, 100, 300), np.linspace(100, 60, 200)])
    returns = level + 10 * RNG.standard_normal(500)
    returns[20] = 400.0
    run = make_run({"return": list(returns)})
    episodes = {name: replace(s, window="batch") for name, s in run.series.items()}
    best = best_checkpoint(Study(replace(run, series=episodes)), [])
    assert best is not None
    assert 250 <= (best.step or 0) <= 400
    assert best.value == pytest.approx(95, abs=8)
    assert "mean" in best.why


def test_an_evaluation_counts_by_itself() -> None:
    scores = [0.5, 0.6, 0.8, 0.7, 0.65]
    best = best_checkpoint(Study(make_run({"val/accuracy": scores})), [])
    assert best is not None
    assert (best.step, best.value) == (2.0, 0.8)


def test_a_score_at_chance_is_nothing_to_keep() -> None:
    study = Study(make_run({"val/accuracy": [10.0] * 8}))
    chance = Finding("at-chance", "val/accuracy is chance", "ill", "is", "val/accuracy", "step", 0.0)
    best = best_checkpoint(study, [], [chance])
    assert best is not None
    assert best.nothing == "the best val/accuracy is worth nothing: val/accuracy is chance"
    free = best_checkpoint(study, [], [replace(chance, onset=3.0)])
    assert free is not None
    assert not free.nothing, "it was good before it fell to chance"


def test_the_first_value_of_a_run_that_learned_nothing_is_nothing_to_keep() -> None:
    study = Study(make_run({"val/loss": [2.9, 3.1, 8.0, 40.0, 900.0, 1e6], "train/loss": [3.0] * 6}))
    idle = Finding("barely-learned", "", "ill", "is", "train/loss", "step", 0.0)
    best = best_checkpoint(study, [], [idle])
    assert best is not None
    assert "nothing was learned" in best.nothing


def test_what_comes_after_a_score_left_its_level_is_no_noise() -> None:
    """An exploding loss made every evaluation before its last "as good within noise"."""
    calm = [1.0, 0.9, 0.8, 0.7, 0.61, 0.6, 0.62, 0.61]
    run = make_run({"val/loss": [*calm, 1e3, 1e6, 1e9, 1e12, 1e15, 1e18, 1e21, 1e24, 1e27, 1e30]})
    left = Finding("diverged", "", "watch", "is-p", "val/loss", "step", 8.0)
    best = best_checkpoint(Study(run), [], [left])
    assert best is not None
    assert best.noise is not None
    assert best.noise < 0.1
    assert 1 < best.equal <= 4
    at_once = best_checkpoint(Study(run), [], [replace(left, onset=0.0), replace(left, onset=2.0)])
    assert at_once is not None
    assert at_once.noise is not None, "the evaluations up to the best one count"


SCORES = make_run({"val/accuracy": [0.1, 0.5, 0.9, 0.6]}, facts={"steps_per_epoch": 1})


@pytest.mark.parametrize(
    ("files", "path", "says"),
    [
        ((), None, "no checkpoint lies here"),
        ((Checkpoint("gone.pt", 2.0, exists=False),), None, "none lies here"),
        ((Checkpoint("model.pt"),), None, "where in the run they were saved is not known"),
        ((Checkpoint("a.pt", 0.0), Checkpoint("b.pt", 2.0)), "b.pt", ""),
        ((Checkpoint("f.pt", epoch=5.0), Checkpoint("e.pt", epoch=0.0), Checkpoint("x.pt")), "e.pt", "the nearest"),
        ((Checkpoint("z.pt", 4.0), Checkpoint("y.pt", 3.0)), "y.pt", "the nearest"),
        ((Checkpoint("w.pt", 0.0), Checkpoint("y.pt", 3.0)), "y.pt", "the nearest"),
    ],
)
def test_the_file_of_the_best_evaluation(files: tuple[Checkpoint, ...], path: str | None, says: str) -> None:
    best = best_checkpoint(Study(replace(SCORES, checkpoints=files)), [])
    assert best is not None
    assert best.path == path
    assert says in best.why
    assert says or best.why == "best val/accuracy"
    assert best.exists is (path is not None)
    assert "as good within noise" not in best.why


def test_a_score_that_cannot_be_believed_chooses_nothing() -> None:
    run = make_run({"val/accuracy": [0.1, 0.9, 0.5], "val/loss": [2.0, 1.0, 0.5]})
    best = best_checkpoint(Study(run), [MetricVerdict("val/accuracy", "no", "it is broken")])
    assert best is not None
    assert (best.metric, best.step) == ("val/loss", 2.0)


@pytest.mark.parametrize(
    ("scores", "kept"), [([10.0, 10.1, 9.9, 10.1, 10.0, 9.9], False), ([10.0, 12, 14, 16, 18, 20], True)]
)
def test_a_run_that_learned_something_has_something_to_keep(scores: list[float], kept: bool) -> None:
    idle = Finding("barely-learned", "", "ill", "is", "val/accuracy", "step", 0.0)
    best = best_checkpoint(Study(make_run({"val/accuracy": scores})), [], [idle])
    assert best is not None
    assert (best.nothing == "") is kept
