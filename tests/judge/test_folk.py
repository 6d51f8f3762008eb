"""Folk rules on runs made for them: refused where the run invites them, not said where the evidence is otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from wheeltapper.finding import Finding
from wheeltapper.judge.diagnose import diagnose_run
from wheeltapper.testing import make_run

RNG = np.random.default_rng(3)
N = 120
NOISE = RNG.standard_normal(N)
FALLS = list(0.5 + 2.0 * np.exp(-4 * np.arange(N) / N) + 0.01 * NOISE)
RISES = [*FALLS[:60], *(FALLS[59] + 0.08 * np.arange(1, 61))]
PEAKED = [*np.linspace(0.2, 0.8, 20), *np.linspace(0.79, 0.4, 100)]
ADAM = "optimizer: AdamW\nlr: 0.001\nmax_steps: 1200\n"

CUTS = (
    "name: x\nscale: 2\nuse_amp: false\nnetwork_g:\n  type: a\nlogger:\n  print_freq: 10\ntrain:\n  ema_decay: 0\n  grad_clip: false\n  optim_g:\n    type: AdamW\n    lr: 0.001\n  scheduler:\n    type: MultiStepLR\n"
    "    milestones: [{}]\n  total_iter: 1200\n"
)


def refused(
    series: Mapping[str, Sequence[float]], config: str | None = None, audit: Sequence[Finding] = (), **more: Any
) -> dict[str, str]:
    run = make_run(series, config=config, spacing=10.0, start=10.0, **more)
    return {r.id: f"{r.title}: {r.why}" for r in diagnose_run(run, audit=audit).ruled_out}


def told(finding_id: str, **numbers: float) -> Finding:
    return Finding(finding_id, f"--resume_from: {finding_id}", "watch", "is", numbers=numbers)


def test_a_cut_that_comes_after_the_peak_is_no_cause() -> None:
    runs = {"train/loss": FALLS, "val/accuracy": PEAKED}
    assert "step 600" in refused(runs, CUTS.format("600, 900"))["cut-too-early"]
    assert "cut-too-early" not in refused(runs, CUTS.format("100, 900"))
    assert "cut-too-early" not in refused({"train/loss": FALLS}, CUTS.format("600, 900")), "nothing is wrong"


def test_clipping_that_is_on_is_no_cure_unless_the_norm_grows() -> None:
    config = ADAM + "grad_clip: 1.0\n"
    steady = refused({"train/loss": RISES, "grad_norm": list(0.5 + 0.01 * NOISE)}, config)
    assert "never reaches it" in steady["clip-as-cure"]
    grown = {"train/loss": RISES, "grad_norm": [*[0.5] * 60, *(0.5 * 1.1 ** np.arange(60))]}
    assert "clip-as-cure" not in refused(grown, config)
    assert "clip-as-cure" not in refused({"train/loss": FALLS, "grad_norm": [0.5] * N}, config), "nothing is wrong"
    doubted = refused({"train/loss": RISES}, config, [Finding("clip-before-unscale", "clip", "watch", "is")])
    assert "clip-as-cure" not in doubted


def test_a_rate_that_never_acted_is_not_too_high() -> None:
    rates = list(np.linspace(1e-5, 1e-4, N))
    assert "10% of it" in refused({"train/loss": RISES, "lr": rates}, ADAM)["rate-never-reached"]
    assert "rate-never-reached" not in refused({"train/loss": RISES, "lr": list(np.linspace(1e-5, 1e-3, N))}, ADAM)


def test_a_training_loss_that_rises_is_not_overfitting() -> None:
    assert "overfit-by-training-loss" in refused({"train/loss": RISES})
    assert "overfit-by-training-loss" not in refused({"train/loss": FALLS})


def test_an_average_is_blamed_only_where_a_score_is_poor_and_it_is_short() -> None:
    runs = {"train/loss": FALLS, "val/accuracy": PEAKED}
    short, long = ADAM + "scheduler: cosine\nema_decay: 0.98\n", ADAM + "scheduler: cosine\nema_decay: 0.999\n"
    assert "50 of 1,200" in refused(runs, short)["average-against-schedule"]
    assert "average-against-schedule" not in refused(runs, long)
    assert "average-against-schedule" not in refused({"train/loss": FALLS, "val/accuracy": sorted(PEAKED)}, short)


def test_no_checkpoint_of_the_peak() -> None:
    runs = {"train/loss": FALLS, "val/accuracy": PEAKED}
    assert "one is saved every 500 steps" in refused(runs, ADAM + "save_steps: 500\n")["resume-at-peak"]
    assert "resume-at-peak" not in refused(runs, ADAM + "save_steps: 50\n")


@pytest.mark.parametrize(
    ("finding", "claim", "words"),
    [
        (told("accumulation-not-implemented"), "accumulated-gradients", "nothing is accumulated"),
        (told("option-never-used"), "resume-unread", "never loads it"),
        (told("warmup-longer-than-run", warmup=900, total=600), "longer-warmup", "900"),
        (told("noise-as-published", P_mean=-0.4, P_std=1.0), "noise-levels", "EDM2"),
        (told("scheduler-stepped-in-init"), "pre-step-harmless", "scheduler before the optimizer"),
    ],
)
def test_what_the_code_proves_refuses_what_is_said(finding: Finding, claim: str, words: str) -> None:
    assert words in refused({"train/loss": FALLS}, ADAM, [finding])[claim]
    assert claim not in refused({"train/loss": FALLS}, ADAM)


def test_fp16_is_not_to_blame_at_a_high_scale() -> None:
    scale = [65536.0] * 60 + [131072.0] * 60
    runs = {"train/loss": FALLS, "val/accuracy": PEAKED, "loss_scale": scale}
    assert "4.5e-13" in refused(runs)["fp16-imprecise"]
    assert "fp16-imprecise" not in refused({"train/loss": FALLS, "loss_scale": scale})
    assert "fp16-imprecise" not in refused({**runs, "loss_scale": [65536.0] * 60 + [16.0] * 60})


def test_a_curriculum_whose_loss_falls_against_an_untrained_model_is_not_answered() -> None:
    config = (
        "graph:\n  type: absorb\ntokens: 36\nnoise:\n  type: cosine\n  sigma_min: 0.0001\n  sigma_max: 0.8\ntraining:\n  accum: 1\n"
        "  n_iters: 2000\noptim:\n  lr: 0.0001\n  warmup: 100\ncurriculum:\n  enabled: true\n  preschool_time: 1200\n  difficulty_ramp: linear\n"
    )
    share = 0.1 + 0.9 * np.minimum(1, np.arange(1, N + 1) * 10 / 1200)
    untrained = 3.58 * 0.55 * share
    assert "curriculum-outruns" in refused({"train/loss": list(untrained * (1 + 0.05 * NOISE))}, config)
    learned = untrained * np.linspace(1.0, 0.4, N)
    assert "curriculum-outruns" not in refused({"train/loss": list(learned)}, config)
