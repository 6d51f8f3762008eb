"""What every observation owes: a page, few edges, a number or Unknown, and no failure on what a run may leave."""

from __future__ import annotations

import math
import time

import pytest

from wheeltapper.finding import Unknown
from wheeltapper.observations import Observation, Reading, observations
from wheeltapper.run.model import Run
from wheeltapper.study import Absent, Study, registry, unknown_from
from wheeltapper.study import parameters_of as parameters
from wheeltapper.testing import make_run

LIMIT = 0.05  # seconds, ten times what is asked for: the machine is shared


def _runs() -> dict[str, Run]:
    falling = [2.0 * 0.97**i for i in range(120)]
    return {
        "nothing": make_run({}),
        "one value": make_run({"train_loss": [1.0], "val_accuracy": [0.5]}),
        "not finite": make_run({"train_loss": [math.nan] * 30, "val_loss": [math.inf] * 30, "lr": [0.0] * 30}),
        "constant": make_run({"train_loss": [0.0] * 30, "val_loss": [0.0] * 30, "val_psnr": [0.0] * 30, "kl": [0.0] * 30}),
        "negative": make_run({"train_loss": [-float(i) for i in range(30)], "reward": [-5.0] * 30}),
        "ordinary": make_run(
            {"train_loss": falling, "val_loss": [1.05 * x for x in falling], "lr": [1e-3] * 120, "grad_norm": [1.0] * 120},
            config="optimizer: adam\nlr: 0.001\nbatch_size: 32\nn_train: 4000\nn_val: 200\ndropout: 0.1\nnum_classes: 10\n",
        ),
    }


RUNS = _runs()


@pytest.mark.parametrize("observation", observations(), ids=lambda o: o.id)
def test_its_page_and_its_edges(observation: Observation) -> None:
    assert len(observation.edges) <= 8
    assert observation.about in ("learning", "evaluation", "efficiency", "crash")
    assert any(observation.inside(state) for state in range(len(observation.edges) + 1)), "no state is healthy"
    known = {*registry(), "run"}
    assert set(parameters(observation.observe)) <= known, "a part that the study does not have"


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("observation", observations(), ids=lambda o: o.id)
def test_it_answers_on_any_record(observation: Observation, name: str) -> None:
    try:
        answer = Study(RUNS[name]).call(observation.observe)
    except Absent as absent:
        answer = unknown_from(absent)
    assert isinstance(answer, Reading | Unknown)
    assert answer.text if isinstance(answer, Reading) else answer.why
    assert isinstance(answer, Unknown) or math.isfinite(answer.value)


def test_nothing_is_known_of_nothing() -> None:
    for observation in observations():
        try:
            answer = Study(RUNS["nothing"]).call(observation.observe)
        except Absent:
            continue
        assert isinstance(answer, Unknown), observation.id


def test_all_together_are_cheap() -> None:
    study = Study(RUNS["ordinary"])
    slow = {}
    for observation in observations():
        began = time.perf_counter()
        try:
            study.call(observation.observe)
        except Absent:
            continue
        slow[observation.id] = time.perf_counter() - began
    assert sum(slow.values()) < LIMIT * len(slow), sorted(slow, key=slow.__getitem__)[-3:]
