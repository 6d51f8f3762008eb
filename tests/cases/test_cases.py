"""The five cases: what a correct doctor says of each, and the false claims of the write-ups refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from wheeltapper.api import diagnose
from wheeltapper.audit import AuditReport, audit
from wheeltapper.judge.model import Diagnosis

CASES = Path(__file__).resolve().parents[2] / "examples" / "cases"


@cache
def diagnosis(name: str) -> Diagnosis:
    (found,) = diagnose(CASES / name)
    return found


@cache
def audited(name: str) -> AuditReport:
    return audit([CASES / name])


def ids(report: AuditReport, grade: str | None = None) -> set[str]:
    return {f.id for f in report.findings if grade is None or f.grade == grade}


def row(report: AuditReport, label: str) -> str:
    return next(f"{r.value} ({r.how})" for r in report.rows if r.label == label)


# 000: an EDM prior


def test_000_the_true_batch_and_the_five_unwired_options() -> None:
    report = audited("000-edm-prior")
    unwired = {f.summary.split()[0] for f in report.findings if f.id == "option-never-used"}
    assert unwired == {
        "--gradient_accumulation_steps",
        "--lr_scheduler",
        "--warmup_steps",
        "--gradient_clip_norm",
        "--resume_checkpoint",
    }
    assert "accumulation-not-implemented" in ids(report, "is")
    assert row(report, "effective batch").startswith("4 (")
    assert "declared 64" in row(report, "effective batch")


def test_000_two_single_batches_prove_no_divergence() -> None:
    found = diagnosis("000-edm-prior")
    assert [f.id for f in found.findings if f.severity == "ill"] == ["accumulation-not-implemented"], (
        "the code, not the loss"
    )
    assert not [f for f in found.findings if f.id == "diverged"]
    loss = next(v for v in found.validity if v.series == "train/loss")
    assert loss.valid == "cannot-tell"
    refused = next(r for r in found.ruled_out if r.id == "last-value-high")
    assert "one value is one batch" in refused.why


# 001 and 002: super-resolution


def test_001_the_evaluation_is_broken_not_the_optimizer() -> None:
    found = diagnosis("001-sr-degradation")
    assert found.verdict == "ill"
    assert {"below-baseline", "error-in-pixels"} & {f.id for f in found.findings[:2]}  # both say that the evaluation is off
    assert found.causes[0].id in ("eval-broken", "eval-resized-images", "eval-normalisation-mismatch")
    assert {v.valid for v in found.validity if "psnr" in v.series or "ssim" in v.series} == {"no"}
    named = {c.id for c in found.causes if c.probability > 0.05}
    assert not named & {"lr-too-high", "fp16-overflow", "overfitting", "clip-too-small", "no-warmup"}


def test_001_no_checkpoint_is_recommended_by_a_broken_metric_and_the_run_is_over() -> None:
    found = diagnosis("001-sr-degradation")
    assert found.best is None
    assert found.progress.state == "finished"


def test_001_a_scale_of_2_to_the_21_is_no_explosion() -> None:
    refused = next(r for r in diagnosis("001-sr-degradation").ruled_out if r.id == "high-loss-scale")
    assert "2^21" in refused.why
    assert "overflows" in refused.why


def test_001_no_remedy_is_a_no_op() -> None:
    edits = [edit for c in diagnosis("001-sr-degradation").causes for r in c.remedies for edit in r.edits]
    assert [e for e in edits if e.old == e.new] == []
    assert not [e for e in edits if e.knob.startswith("clip")]


def test_001_its_own_config_is_right() -> None:
    assert ids(audited("001-sr-degradation"), "is") == set()


def test_002_the_suggested_config_does_not_load() -> None:
    report = audited("002-sr-fix")
    texts = " ".join(f.summary for f in report.findings)
    assert {"string-number", "missing"} <= ids(report, "is")
    assert "`path` is missing" in texts
    assert "1.0e-6" in texts
    assert "grad_clip_max_norm" in texts
    assert all(f.places[0].line for f in report.findings)


# 003: SEDD with a curriculum


def test_003_the_loss_is_not_comparable_and_nothing_diverged() -> None:
    found = diagnosis("003-sedd-curriculum")
    assert not [f for f in found.findings if f.severity == "ill" and f.series not in (None, "lr")], (
        "no sign in the curve is held against it"
    )
    loss = next(v for v in found.validity if v.series == "train/loss")
    assert loss.valid == "cannot-tell"
    assert "curriculum" in loss.why
    assert any(e.id == "normal-curriculum-rise" for e in found.expected)


def test_003_units_and_lengths() -> None:
    told = {f.id: f for f in diagnosis("003-sedd-curriculum").findings}
    assert "warmup-longer-than-run" in told
    assert "run-shorter-than-declared" in told
    assert "1,250 updates" in row(audited("003-sedd-curriculum"), "curriculum")
    assert "unused-section" in ids(audited("003-sedd-curriculum"))


# 004: ImageNet


def test_004_the_average_is_too_long_and_the_learning_rate_is_not_to_blame() -> None:
    found = diagnosis("004-imagenet-onecycle")
    assert found.verdict == "ill"
    assert "never-left-zero" in {f.id for f in found.findings if f.severity == "ill"}
    assert found.causes[0].id == "ema-horizon-too-long"
    assert "100,000" in found.causes[0].summary
    assert "37,500" in found.causes[0].summary
    assert not [c for c in found.causes if c.id == "lr-too-high" and c.probability > 0.05]


def test_004_the_harmless_pre_step_kills_the_last_batch() -> None:
    report = audited("004-imagenet-onecycle")
    assert {"onecycle-overrun", "onecycle-overrides-momentum"} <= ids(report, "is")


def test_004_the_last_rate_is_not_what_the_write_up_says() -> None:
    """0.8 / 25 / 10^4 = 3.2e-6; the write-up says 0.00008."""
    assert row(audited("004-imagenet-onecycle"), "learning rates").startswith("0.032, 0.8, 3.2e-06")


# The false claims of the write-ups, refused by name with the run's own numbers


REFUSED: dict[str, dict[str, tuple[str, ...]]] = {
    # The write-up's claim: what the report must call it, and numbers it must show.
    "000-edm-prior": {
        "last-value-high": ("one value is one batch", "6.74"),
        "overfit-by-training-loss": ("6.74",),
        "accumulated-gradients": ("micro-batch of 4",),
        "resume-unread": ("never loads it",),
        "noise-levels": ("EDM itself", "0.301", "16%"),
    },
    "001-sr-degradation": {
        "high-loss-scale": ("2^21", "65,536", "14 overflows in 40,000", "0.031"),
        "fp16-imprecise": ("2.8e-14", "8 significant bits against 11"),
        "cut-too-early": ("1,000", "20,000"),
        "clip-as-cure": ("0.261 at most", "on already", "never reaches it"),
        "loss-weights-shift": ("0.9992", "1.0008", "0.08%"),
        "average-against-schedule": ("1,000 of 40,000",),
        "resume-at-peak": ("20,000",),
    },
    "002-sr-fix": {
        "average-against-schedule": ("1,000 of 40,000", "never put back"),
        "loss-weights-shift": ("1 ± 0.02", "max_weight"),
    },
    "003-sedd-curriculum": {
        "longer-warmup": ("5,000", "3,700"),
        "rate-never-reached": ("2.5e-05", "25%"),
        "clip-as-cure": ("a smaller threshold clips more", "AdamW"),
        "curriculum-outruns": ("0.23, logged 0.26", "1.90, logged 2.33"),
        "less-noise": ("1.97 at 0.8", "1.41 at 0.5", "55%"),
    },
    "004-imagenet-onecycle": {
        "rate-of-an-epoch's-end": ("0.032", "0.061334", "626 of 37,500"),
        "pre-step-harmless": ("ValueError",),
        "batch-norm-of-average": ("0.9999^625 = 93.9%",),
        "average-on-one-rank": ("same weights",),
    },
}


@pytest.mark.parametrize(("name", "claim"), [(name, claim) for name, claims in REFUSED.items() for claim in claims])
def test_a_false_claim_is_refused_by_name(name: str, claim: str) -> None:
    why = next(r.why for r in diagnosis(name).ruled_out if r.id == claim)
    for words in REFUSED[name][claim]:
        assert words in why


def test_001_decibels_are_no_percentage() -> None:
    told = next(
        f
        for f in diagnosis("001-sr-degradation").findings
        if f.series == "val/psnr.CC0_147k_Val" and "declined" in f.id
    )
    assert "0.48 dB worse: the squared error grew by 12%" in told.summary


def test_002_bf16_has_no_scale() -> None:
    """The write-up promises a scale of 1e3 to 1e4 after the fix."""
    assert "a scale that is logged is 1" in row(audited("002-sr-fix"), "precision")


def test_003_check_and_diagnose_count_the_same_updates() -> None:
    assert row(audited("003-sedd-curriculum"), "updates per epoch").startswith("74 (")
    told = {f.id: f.summary for f in diagnosis("003-sedd-curriculum").findings}
    assert "50 epochs of 74 updates are 3,700" in told["run-shorter-than-declared"]
    cause = diagnosis("003-sedd-curriculum").causes[0]
    assert cause.id == "warmup-longer-than-run"
    assert cause.remedies[0].edits[0].new < 3700


def test_004_workers_are_per_process_and_the_size_never_changes() -> None:
    assert row(audited("004-imagenet-onecycle"), "loader workers").startswith("24 (per process, 192 over 8")
    assert "resize-not-applied" in ids(audited("004-imagenet-onecycle"), "is")


def test_001_the_warm_up_starts_at_the_first_update() -> None:
    assert "from 4e-07, peak 0.0002" in row(audited("001-sr-degradation"), "schedule")
