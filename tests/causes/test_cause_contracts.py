"""Every cause meets the contract: its documentation, its signs, evidence that is numbers, and no exception."""

from __future__ import annotations

import math
import re
import tempfile
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from wheeltapper.causes import SECTIONS, Case, Excluded, causes, remedies_of, weighed
from wheeltapper.config.knobs import KNOBS
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.finding import Finding
from wheeltapper.report.pages import pages_of
from wheeltapper.run.gather import read_runs
from wheeltapper.run.model import Run
from wheeltapper.signals import Signals
from wheeltapper.signs import ask, signs
from wheeltapper.testing import make_run, run_of_case

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "runs"
CAUSES = causes()
NORMALS = [c for c in CAUSES if getattr(c, "NORMAL", False)]
TEMPORARY = tempfile.TemporaryDirectory()  # the weights of made runs; read when a sign is asked
REAL = [c for c in CAUSES if not getattr(c, "NORMAL", False)]
SIGN_IDS = {sign.ID for sign in signs()} | {page.id for page in pages_of("check")}  # what the audit finds counts too


def case_of(run: Run) -> Case:
    signals = Signals(run)
    found = [a for sign in signs() for a in ask(sign, signals) if isinstance(a, Finding)]
    return Case(signals, tuple(found))


def made_runs() -> dict[str, Run]:
    runs = {
        "empty": make_run({}),
        "one series": make_run({"train/loss": [2.0, 1.5, 1.2, 1.0, 0.9, 0.85, 0.8, 0.78]}),
        "one value": make_run({"val/accuracy": [0.5]}),
        "never finite": make_run({"train/loss": [math.nan] * 8, "lr": [math.nan] * 8, "grad_norm": [math.inf] * 8}),
        "zeros": make_run(
            {"train/loss": [0.0] * 12, "lr": [0.0] * 12, "grad_norm": [0.0] * 12, "loss_scale": [0.0] * 12}
        ),
        "odd settings": make_run(
            {"train/loss": [2.0, 1.0, 3.0, 9.0, 20.0, 50.0], "lr": [1e-3] * 6},
            config="lr: 0\nepochs: 0\nbatch_size: 0\nworld_size: 0\nema_decay: 1.0\nclip_grad: -1\nmilestones: []\n"
            "accumulation_steps: 0\nwarmup_steps: -5\noptimizer: adam\nbetas: [1.0, 1.0]\neps: 0\n",
            facts={"steps_per_epoch": 0, "total_steps": 0, "n_params": 0, "world_size": 0},
        ),
    }
    for sign in signs():
        for label, case in sign.CASES.items():
            folder = Path(tempfile.mkdtemp(dir=TEMPORARY.name))
            runs[f"{sign.ID}:{label}"] = run_of_case(case, folder)
    return runs


@cache
def made_cases() -> dict[str, Case]:
    return {name: case_of(run) for name, run in made_runs().items()}


@pytest.mark.parametrize("cause", CAUSES, ids=lambda c: c.ID)
def test_documentation(cause: ModuleType) -> None:
    text = cause.__doc__ or ""
    assert text.strip().splitlines()[0].endswith("."), "the first line is a sentence"
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == list(SECTIONS)
    for body in re.split(r"^## .+$", text, flags=re.MULTILINE)[1:]:
        assert len(body.strip()) > 10, "a section says something"


@pytest.mark.parametrize("cause", REAL, ids=lambda c: c.ID)
def test_claims_only_signs_that_exist(cause: ModuleType) -> None:
    assert cause.EXPLAINS
    assert set(cause.EXPLAINS) <= SIGN_IDS
    assert cause.PRIOR <= 0
    assert cause.TRIAL
    assert not cause.ID.startswith("normal-")


@pytest.mark.parametrize("cause", NORMALS, ids=lambda c: c.ID)
def test_a_normal_pattern_explains_nothing_ill(cause: ModuleType) -> None:
    assert cause.ID.startswith("normal-")
    assert cause.EXPLAINS == ()
    assert isinstance(cause.weigh(made_cases()["empty"]), Excluded)
    assert cause.expect(made_cases()["empty"]) == ""


def check(cause: ModuleType, case: Case) -> None:
    if getattr(cause, "NORMAL", False):
        assert isinstance(cause.expect(case), str)
        return
    answer = weighed(cause, case)
    if isinstance(answer, Excluded):
        assert answer.why
        return
    for item in answer:
        assert math.isfinite(item.bits)
        assert item.text
        assert item.group
    for remedy in remedies_of(cause, case):
        assert remedy.text.endswith(".")
        for edit in remedy.edits:
            assert edit.knob in KNOBS
            assert edit.old != edit.new, "a remedy changes something"


@pytest.mark.parametrize("cause", CAUSES, ids=lambda c: c.ID)
def test_never_raises_on_made_runs(cause: ModuleType) -> None:
    for case in made_cases().values():
        check(cause, case)


def test_an_empty_run_has_no_cause() -> None:
    assert diagnose_run(make_run({})).causes == ()


def shared_names() -> list[str]:
    return sorted(p.name for p in SHARED.iterdir() if p.is_dir()) if SHARED.is_dir() else []


@pytest.mark.parametrize("name", shared_names())
def test_never_raises_on_real_records(name: str) -> None:
    for run in read_runs(SHARED / name):
        case = case_of(run)
        for cause in CAUSES:
            check(cause, case)
