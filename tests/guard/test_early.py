"""A warning before the loss moves; nothing on a run that learns, restarts, warms up, or gets other batches."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from wheeltapper.errors import InputError
from wheeltapper.guard import Guard, guarded
from wheeltapper.guard.early import Warned
from wheeltapper.guard.judge import Alarm, Judge
from wheeltapper.guard.record import Incident, StepRecord, TensorRecord
from wheeltapper.guard.replay import read_incident

Curve = Callable[[int], float]


def told(
    scatter: Curve,
    loss: Curve,
    rate: Curve = lambda _: 1e-3,
    level: Curve = lambda _: 0.0,
    steps: int = 3000,
    **more: Any,
) -> list[tuple[str, int]]:
    """What is said of a run whose log norm has this scatter and level, whose losses are these with a little noise."""
    rng = np.random.default_rng(4)
    judge, out = Judge(("w",)), []
    for k in range(steps):
        norm = math.exp(level(k) + scatter(k) * rng.standard_normal())
        r = StepRecord(
            k, k, 0.0, loss(k) + 0.01 * rng.standard_normal(), 1, norm, (norm,), True, (rate(k),), 1e-3, 0, -1, None, math.nan,
            False, True,
        )  # fmt: skip
        out += [(a.kind, k) for a in judge.step(StepRecord(**{**r.as_dict(), **more}))]
    return out


def learned(k: int) -> float:
    """A loss that has come to its floor by step 1100."""
    return 1.5 + 2.0 * max(0.0, 1 - k / 1100) ** 2


def test_a_norm_that_scatters_before_the_loss_moves() -> None:
    """As a GPT whose rate climbs: 0.04 to 0.3 within some hundred steps, the loss at its floor."""
    said = told(
        lambda k: 0.04 * 1.006 ** max(0, min(k, 1700) - 1300), learned, rate=lambda k: 1e-3 * 1.003 ** max(0, k - 1200)
    )
    assert [kind for kind, _ in said] == ["early"]
    assert 1300 + 180 < said[0][1] < 1300 + 450  # the scatter has tripled after 180 steps


def test_it_is_said_once_until_the_loss_is_better_than_ever() -> None:
    assert len(told(lambda k: 0.04 if k < 1300 else 0.3, learned, steps=6000)) == 1


@pytest.mark.parametrize(
    ("scatter", "loss", "rate", "level"),
    [
        pytest.param(lambda _: 0.04, learned, lambda _: 1e-3, lambda _: 0.0, id="healthy"),
        pytest.param(
            lambda k: 0.04 * 1.002 ** min(k, 1500), lambda k: 4 - k / 1000, lambda _: 1e-3, lambda _: 0.0, id="learns"
        ),
        pytest.param(
            lambda k: 0.04 + 0.3 * (k % 1000 < 500) * (k >= 1000), lambda k: learned(k) + 0.05 * (k % 1000 < 500) * (k >= 1000),
            lambda k: 1e-3 * (1 - (k % 1000) / 1000), lambda _: 0.0, id="restarts",
        ),
        pytest.param(
            lambda _: 0.04, lambda k: learned(k) + 0.8 * (k >= 1500), lambda _: 1e-3, lambda k: 1.1 * (k >= 1500), id="resize"
        ),
        pytest.param(
            lambda k: 0.04 if k < 1500 else 0.08, learned, lambda _: 1e-3, lambda k: 0.7 * (k >= 1500), id="a-quarter-of-the-batch"
        ),
        pytest.param(
            lambda k: 0.04 + 0.3 * min(1.0, k / 1000), lambda k: 4 - 1.5 * min(1.0, k / 1000),
            lambda k: 1e-3 * min(1.0, k / 1000), lambda _: 0.0, id="warm-up",
        ),
    ],
)  # fmt: skip
def test_silent(scatter: Curve, loss: Curve, rate: Curve, level: Curve) -> None:
    assert "early" not in [kind for kind, _ in told(scatter, loss, rate, level)]


def test_silent_where_the_task_is_solved() -> None:
    """A loss of a thousandth of the first one: norms vary by factors there, and nothing is lost."""

    def solved(k: int) -> float:
        return 10.0 if k < 64 else 0.02 + 0.03 * math.exp(-k / 250)

    assert told(lambda k: 0.04 if k < 1300 else 0.3, solved) == []


def test_silent_without_a_loss() -> None:
    assert told(lambda k: 0.04 if k < 1300 else 0.3, lambda _: math.nan, loss_given=False) == []


def test_nothing_is_early_after_the_loss_has_left_its_band() -> None:
    said = told(lambda k: 0.04 if k < 1500 else 0.3, lambda k: learned(k) + (3.0 if k >= 1500 else 0.0), steps=1900)
    assert {kind for kind, _ in said} == {"loss-left-band"}


def warn_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    text = "Early warning: the gradient norm scatters."
    monkeypatch.setattr(
        "wheeltapper.guard.early.Early.step",
        lambda _self, r, _solved: Warned(text, r.step - 3, {"times": 4.0}) if r.step == step else None,
    )


def train(guard: Any, model: Any, optimizer: Any, steps: int = 20) -> None:
    for _ in range(steps):
        loss = model(torch.ones(2, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()


def made() -> tuple[Any, Any]:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    return model, torch.optim.SGD(model.parameters(), lr=1e-3)


def test_where_it_appears(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """In the log, the callback, the journal and a folder to replay."""
    warn_at(monkeypatch, 8)
    model, optimizer = made()
    heard: list[Incident] = []
    with (
        caplog.at_level(logging.INFO),
        guarded(model, optimizer, run_dir=tmp_path, callback=heard.append, ask=False) as guard,
    ):
        train(guard, model, optimizer)
    assert [(i.kind, i.severity, i.step, i.onset, i.action) for i in heard] == [("early", "early", 8, 5, None)]
    assert ["Early warning" in r.message for r in caplog.records if r.levelno == logging.WARNING] == [True]
    lines = [json.loads(line) for line in (tmp_path / "guard.jsonl").read_text().splitlines()]
    assert [line["severity"] for line in lines if line.get("kind") == "early"] == ["early"]
    assert read_incident(tmp_path / "incident-8").incident["kind"] == "early"


@pytest.mark.parametrize(
    ("early", "rate", "kinds"), [(True, 1e-3, ["early"]), ("act", 5e-4, ["early", "cut"]), (False, 1e-3, [])]
)
def test_it_acts_only_when_asked_to(early: Any, rate: float, kinds: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    warn_at(monkeypatch, 8)
    model, optimizer = made()
    guard = Guard(model, optimizer, policy="cut", early=early)
    train(guard, model, optimizer)
    guard.close()
    assert [i.kind for i in guard.incidents] == kinds
    assert optimizer.param_groups[0]["lr"] == rate


def test_early_is_one_of_three() -> None:
    with pytest.raises(InputError, match="early="):
        Guard(*made(), early="loud")


# Two further rules against false alarms, of the same measurement.


def look(k: int, moved: float) -> TensorRecord:
    one = np.ones(1)
    return TensorRecord(k, k, one, one, 1e-9 * one, moved * one, one, one)


def test_a_rate_that_was_annealed_may_leave_weights_where_they_are() -> None:
    judge = Judge(("w",))
    rates = [1.0, 0.5, 0.009, 0.002]
    kinds = [a.kind for k, rate in enumerate(rates) for a in judge.tensors(look(k, float(rate >= 0.5)), (rate,), [0])]
    assert kinds == []
    kinds = [a.kind for k in range(4, 6) for a in judge.tensors(look(k, 0.0), (0.1,), [0])]
    assert kinds == ["frozen"]


def test_a_burst_of_a_solved_task_is_no_alarm_and_its_collapse_is() -> None:
    """Recurrent nets that have solved their task: 1e-4, then some steps of a tenth of what was learned."""

    def alarms(burst: float) -> list[str]:
        rng = np.random.default_rng(0)
        judge = Judge(("w",))
        found: list[Alarm] = []
        for k in range(820):
            loss = 2.0 if k < 64 else burst if k >= 800 else 1e-4 * math.exp(0.3 * rng.standard_normal())
            norm = loss * math.exp(0.1 * rng.standard_normal())
            found += judge.step(
                StepRecord(k, k, 0.0, loss, 1, norm, (norm,), True, (0.1,), 1e-3, 0, -1, None, math.nan, False, True)
            )
            if k % 100 == 50:
                found += judge.tensors(look(k, float(k < 64)), (0.1,), [0])
        return [a.kind for a in found if a.severity != "note"]

    assert alarms(0.2) == []
    assert alarms(1.5) == ["loss-left-band"]
