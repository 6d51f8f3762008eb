"""The checkpoint to keep: the best by a level, not by one lucky episode."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from wheeltapper.diagnosis.best import best_checkpoint
from wheeltapper.signals import Signals
from wheeltapper.testing import make_run

RNG = np.random.default_rng(0)


def test_one_lucky_episode_is_not_the_best() -> None:
    level = np.concatenate([np.linspace(0, 100, 300), np.linspace(100, 60, 200)])
    returns = level + 10 * RNG.standard_normal(500)
    returns[20] = 400.0
    run = make_run({"return": list(returns)})
    episodes = {name: replace(s, window="batch") for name, s in run.series.items()}
    best = best_checkpoint(Signals(replace(run, series=episodes)), [])
    assert best is not None
    assert 250 <= (best.step or 0) <= 400
    assert best.value == pytest.approx(95, abs=8)
    assert "mean" in best.why


def test_an_evaluation_counts_by_itself() -> None:
    scores = [0.5, 0.6, 0.8, 0.7, 0.65]
    best = best_checkpoint(Signals(make_run({"val/accuracy": scores})), [])
    assert best is not None
    assert (best.step, best.value) == (2.0, 0.8)
