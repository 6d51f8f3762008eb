"""Every sign meets the contract: its documentation, its three answers on its own cases, no hindsight."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from wheeltapper.finding import Clear, Finding, Unknown
from wheeltapper.rules.signs import SECTIONS, ask, signs
from wheeltapper.study import Study
from wheeltapper.testing import make_run, run_of_case

SIGNS = signs()
CASES = [(sign, label, case) for sign in SIGNS for label, case in sign.cases.items()]


def kind_of(answers: list[Any]) -> set[str]:
    kinds = set()
    for answer in answers:
        if isinstance(answer, Finding):
            kinds |= {"finding", answer.severity}
        elif isinstance(answer, Clear):
            kinds.add("clear")
        else:
            assert isinstance(answer, Unknown)
            assert answer.why
            kinds.add("unknown")
    return kinds


@pytest.mark.parametrize("sign", SIGNS, ids=lambda s: s.id)
def test_documentation(sign: ModuleType) -> None:
    text = sign.page or ""
    title = text.strip().splitlines()[0]
    assert title.endswith("."), "the first line is a sentence"
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    for body in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert len(body.strip()) > 20, "a section says something"


@pytest.mark.parametrize("sign", SIGNS, ids=lambda s: s.id)
def test_cases_show_a_finding_and_a_clear(sign: ModuleType) -> None:
    assert {"finding", "clear"} <= set(sign.cases)


@pytest.mark.parametrize(("sign", "label", "case"), CASES, ids=[f"{s.id}:{label}" for s, label, _ in CASES])
def test_own_cases(sign: ModuleType, label: str, case: dict[str, Any], tmp_path: Path) -> None:
    expected = case.get("expect", label)
    answers = ask(sign, Study(run_of_case(case, tmp_path)))
    assert expected in kind_of(answers), answers
    for answer in answers:
        if isinstance(answer, Finding):
            assert answer.id == sign.id
            assert re.search(r"\d", answer.summary), "no claim without its numbers"
            assert answer.places or answer.onset is None


def weather(kind: str, n: int = 400) -> dict[str, list[float]]:
    """Healthy runs that no sign's author chose: noise, drift, warm-up, quantised metrics."""
    rng = np.random.default_rng(sum(map(ord, kind)))
    t = np.arange(n)
    loss = 2.5 * (1 + t / 30.0) ** -0.5 + 0.4
    if kind == "calm":
        loss = loss * (1 + 0.01 * rng.standard_normal(n))
    elif kind == "rough":
        loss = loss * np.exp(0.2 * rng.standard_normal(n))
    elif kind == "heavy":
        loss = loss * (1 + 0.05 * np.abs(rng.standard_t(3, n)))
    elif kind == "slow start":
        loss = np.where(
            t < 80, 2.9 + 0.01 * rng.standard_normal(n), loss[np.maximum(t - 80, 0)] + 0.01 * rng.standard_normal(n)
        )
    elif kind == "correlated":
        noise = np.zeros(n)
        for i in range(1, n):
            noise[i] = 0.9 * noise[i - 1] + 0.02 * rng.standard_normal()
        loss = loss + noise
    elif kind == "flat tail":
        loss = np.maximum(loss, 0.9) + 0.02 * rng.standard_normal(n)
    evals = slice(0, n, 10)
    accuracy = np.round(
        0.9 - 0.75 * (loss[evals] - loss.min()) / (loss.max() - loss.min()) + 0.004 * rng.standard_normal(n // 10), 3
    )
    return {"train/loss": loss.tolist(), "val/accuracy": np.clip(accuracy, 0.02, 0.99).tolist()}


WEATHERS = ["calm", "rough", "heavy", "slow start", "correlated", "flat tail"]


@pytest.mark.parametrize("kind", WEATHERS)
@pytest.mark.parametrize("sign", SIGNS, ids=lambda s: s.id)
def test_no_alarm_in_healthy_weather(sign: ModuleType, kind: str) -> None:
    answers = ask(sign, Study(make_run(weather(kind))))
    assert [a for a in answers if isinstance(a, Finding) and a.severity == "ill"] == []


@pytest.mark.parametrize("sign", [s for s in SIGNS if s.live], ids=lambda s: s.id)
def test_a_live_sign_needs_no_hindsight(sign: ModuleType) -> None:
    """What a sign says of a prefix must not depend on what comes later: asking the prefix alone, and asking
    a run cut to it, are one question; and a sound beginning stays sound whatever follows."""
    for kind in WEATHERS:
        series = weather(kind)
        for n in (40, 150, 300):
            cut = {name: values[: max(1, n * len(values) // 400)] for name, values in series.items()}
            ill = [a for a in ask(sign, Study(make_run(cut))) if isinstance(a, Finding) and a.severity == "ill"]
            assert ill == [], (kind, n)


def test_an_input_cannot_be_changed() -> None:
    run = make_run({"train/loss": [2.0, 1.0, 0.5]})
    with pytest.raises(ValueError, match="read-only"):
        run.series["train/loss"].values[0] = 9.0
