"""Causes of learning rate, schedule, batch, precision, averaging, clipping, resume, loop and logging.

Each has a made run in which it must come first or second, and a look-alike in which it must not be named.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from made_runs import NOISE, at_chance, broken, declared, falling, flat, made, named, top, weigh

from wheeltapper.causes import Excluded
from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.run.merge import merge
from wheeltapper.run.model import Run
from wheeltapper.simulate.schedules import simulate
from wheeltapper.sources.record import Checkpoint, Event, Points, Reading, Tensor
from wheeltapper.testing import make_run

# --- learning rate


def test_a_warmup_longer_than_the_run() -> None:
    run = make_run(
        at_chance(10, 60), spacing=100, config="lr: 0.001\nwarmup_steps: 200000\n", facts={"total_steps": 6000}
    )
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["warmup-longer-than-run"]
    assert diagnosis.causes[0].grade == "is"
    (edit,) = diagnosis.causes[0].remedies[0].edits
    assert (edit.old, edit.new) == (200000, 600)


def test_a_warmup_that_ends_within_the_run_is_not_blamed() -> None:
    run = make_run(at_chance(10, 60), spacing=100, config="lr: 0.001\nwarmup_steps: 500\n", facts={"total_steps": 6000})
    assert isinstance(weigh("warmup-longer-than-run", run), Excluded)


def test_a_run_stopped_within_its_warmup_is_not_blamed_on_it() -> None:
    rates = [1e-6 * i for i in range(60)]
    run = make_run(
        {**at_chance(10, 60), "lr": rates},
        spacing=100,
        config="lr: 0.001\nwarmup_steps: 100000\n",
        facts={"total_steps": 1_000_000},
    )
    assert isinstance(weigh("warmup-longer-than-run", run), Excluded)


@pytest.mark.parametrize(("factor", "first"), [(64.0, True), (8.0, False)])
def test_a_rate_scaled_by_the_world_size(factor: float, first: bool) -> None:
    run = make_run(
        {"train/loss": broken(100, 50), "lr": [0.1 * factor] * 100},
        spacing=100,
        config="lr: 0.1\noptimizer: sgd\nworld_size: 8\n",
    )
    diagnosis = diagnose_run(run)
    assert "lr-scaled-by-world-size" in top(diagnosis)
    assert (top(diagnosis, 1) == ["lr-scaled-by-world-size"]) >= first


@pytest.mark.parametrize("config", ["lr: 0.1\nworld_size: 8\n", "lr: 0.0125\nworld_size: 1\n"])
def test_a_rate_as_configured_is_not_scaled(config: str) -> None:
    run = make_run({"train/loss": broken(100, 50), "lr": [0.1] * 100}, config=config)
    diagnosis = diagnose_run(run)
    assert named(diagnosis, "lr-scaled-by-world-size") == 0.0
    assert top(diagnosis, 1) == ["lr-too-high"]


def test_an_epsilon_as_large_as_the_gradients() -> None:
    config = "optimizer: adamw\nadam_eps: 0.0001\nlr: 0.0003\nnum_classes: 10\n"
    run = make_run(
        {**at_chance(10, 60), "grad_norm": flat(60, 0.1, 0.01)}, spacing=100, config=config, facts={"n_params": 1e8}
    )
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["adam-eps-too-large"]
    small = make_run(
        {**at_chance(10, 60), "grad_norm": flat(60, 0.1, 0.01)},
        spacing=100,
        config=config.replace("0.0001", "1.0e-8"),
        facts={"n_params": 1e8},
    )
    assert isinstance(weigh("adam-eps-too-large", small), Excluded)


def spike_after(lead: int) -> Run:
    n, onset = 400, 300
    loss = falling(n, end=1.5)
    loss[onset:] += 2.0
    norm = np.exp(0.1 * NOISE[:n])
    norm[onset - lead : onset + 3] *= 50
    rates = 1e-3 * (1 - 0.9 * np.arange(n) / n)
    return make_run(
        {"train/loss": loss.tolist(), "grad_norm": norm.tolist(), "lr": rates.tolist()},
        config="optimizer: adamw\nlr: 0.001\nbetas: [0.9, 0.999]\n",
    )


def test_a_norm_that_jumps_before_the_loss_is_second_moment_lag() -> None:
    assert "second-moment-lag" in top(diagnose_run(spike_after(4)), 3)
    assert named(diagnose_run(spike_after(4)), "second-moment-lag") > named(
        diagnose_run(spike_after(0)), "second-moment-lag"
    )


def test_a_short_second_moment_cannot_lag() -> None:
    run = make_run(
        {"train/loss": broken(100, 50), "grad_norm": [1.0] * 100},
        config="optimizer: adamw\nbetas: [0.9, 0.95]\nlr: 0.1\n",
    )
    assert isinstance(weigh("second-moment-lag", run), Excluded)


# --- schedule


def cosine(n: int, period: float, peak: float = 1e-3) -> list[float]:
    return [peak * 0.5 * (1 + math.cos(math.pi * i / period)) for i in range(n)]


def test_a_cosine_past_its_end() -> None:
    n = 200
    score = 0.9 - 0.5 * np.exp(-np.arange(n) / 20) + 0.003 * NOISE[:n]
    score[100:] -= 0.003 * np.arange(100)
    run = make_run(
        {"val/accuracy": score.tolist(), "train/loss": falling(n).tolist(), "lr": cosine(n, 100)},
        clock="epoch",
        config="lr: 0.001\nscheduler: cosine\nepochs: 200\n",
    )
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["schedule-too-short"]


def test_overfitting_under_a_whole_cosine_is_not_a_short_schedule() -> None:
    n = 200
    score = 0.9 - 0.5 * np.exp(-np.arange(n) / 20) + 0.003 * NOISE[:n]
    score[100:] -= 0.003 * np.arange(100)
    run = make_run(
        {"val/accuracy": score.tolist(), "train/loss": falling(n).tolist(), "lr": cosine(n, 200)}, clock="epoch"
    )
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["overfitting"]
    assert named(diagnosis, "schedule-too-short") == 0.0


def test_two_cuts_by_ten_are_no_short_schedule() -> None:
    rates = [0.1] * 60 + [0.01] * 60 + [0.001] * 80
    run = make_run(
        {"val/accuracy": flat(200, 0.8, 0.005), "train/loss": falling(200).tolist(), "lr": rates}, clock="epoch"
    )
    assert isinstance(weigh("schedule-too-short", run), Excluded)


def plateau(lr: list[float], config: str, **facts: float) -> Run:
    n = len(lr)
    loss = 2.0 * 0.97 ** np.arange(n) + 0.8 + 0.02 * NOISE[:n]
    return make_run(
        {"train/loss": loss.tolist(), "lr": lr}, steps_per_epoch=100, config=config, facts={"total_steps": n, **facts}
    )


def test_milestones_beyond_the_end() -> None:
    run = plateau([0.1] * 2500, "lr: 0.1\noptimizer: sgd\nepochs: 25\nlr_decay_epochs: [100, 150]\n", total_epochs=25)
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["milestones-never-reached"]
    (edit,) = diagnosis.causes[0].remedies[0].edits
    assert max(edit.new) < 25


def test_milestones_that_are_reached_are_not_blamed() -> None:
    run = plateau([0.1] * 2500, "lr: 0.1\nepochs: 25\nlr_decay_epochs: [15, 20]\n", total_epochs=25)
    assert isinstance(weigh("milestones-never-reached", run), Excluded)


def hf_config(**extra: Any) -> str:
    lines = {"learning_rate": 1e-3, "lr_scheduler_type": "cosine", "max_steps": 2500, "per_device_train_batch_size": 8}
    lines |= {"warmup_steps": 0, "gradient_accumulation_steps": 1, "output_dir": "out", **extra}
    return "".join(f"{key}: {value}\n" for key, value in lines.items())


def test_a_schedule_that_is_never_stepped() -> None:
    run = plateau([1e-3] * 2500, hf_config())
    diagnosis = diagnose_run(run)
    assert top(diagnosis, 1) == ["schedule-never-decays"]


def test_a_constant_rate_that_was_chosen_is_no_proof() -> None:
    run = plateau([1e-3] * 2500, hf_config(lr_scheduler_type="constant"))
    assert isinstance(weigh("schedule-never-decays", run), Excluded)
    bare = plateau([1e-3] * 2500, "lr: 0.001\n")
    assert named(diagnose_run(bare), "schedule-never-decays") < 0.3


def planned(steps: int, pace: float, n: int) -> list[float]:
    """The HF cosine over `steps` updates, run through `pace` times as fast, on n rows; it climbs past its end."""
    lr = simulate("hf.cosine", 4 * steps, lr=1e-3, num_training_steps=steps, num_warmup_steps=0).lr()
    return [float(lr[int(i * steps / n * pace)]) for i in range(n)]


def rising_again(pace: float, config: str, **facts: float) -> Run:
    """A score that worsens in the end, with the rate at some pace of its plan."""
    n, total = 250, 2500
    score = 0.9 - 0.5 * np.exp(-np.arange(n) / 20) + 0.003 * NOISE[:n]
    score[120:] -= 0.003 * np.arange(n - 120)
    loss = falling(n)
    loss[120:] = loss[119] + 0.01 * NOISE[120:n]
    return make_run(
        {"val/accuracy": score.tolist(), "train/loss": loss.tolist(), "lr": planned(total, pace, n)},
        spacing=10,
        config=config,
        facts={"total_steps": total, **facts},
    )


def test_accelerate_steps_once_per_process() -> None:
    run = rising_again(2.0, hf_config(world_size=2), world_size=2)
    diagnosis = diagnose_run(run)
    assert "accelerate-steps-n-times" in top(diagnosis)
    ranked = next(c for c in diagnosis.causes if c.id == "accelerate-steps-n-times")
    assert ranked.grade == "is"


def test_a_rate_on_its_plan_excludes_other_paces() -> None:
    run = rising_again(1.0, hf_config(world_size=4), world_size=4)
    for cause in ("accelerate-steps-n-times", "schedule-unit-mismatch", "schedule-never-decays"):
        assert isinstance(weigh(cause, run), Excluded)


def test_another_factor_is_not_accelerate() -> None:
    run = rising_again(3.0, hf_config(world_size=4), world_size=4)
    assert isinstance(weigh("accelerate-steps-n-times", run), Excluded)


def test_a_schedule_stepped_once_an_epoch() -> None:
    n = 250
    run = make_run(
        {**at_chance(10, n), "lr": [float(v) for v in _warm_by_epoch(n)]},
        spacing=10,
        steps_per_epoch=50,
        config=hf_config(warmup_steps=50, num_labels=10),
        facts={"total_steps": 2500, "steps_per_epoch": 50},
    )
    assert not isinstance(weigh("schedule-unit-mismatch", run), Excluded)


def _warm_by_epoch(n: int) -> np.ndarray[Any, Any]:
    lr = simulate("hf.cosine", 2500, lr=1e-3, num_training_steps=2500, num_warmup_steps=50).lr()
    return np.array([lr[i * 10 // 50] for i in range(n)])


def test_a_decay_that_is_over_in_the_first_epoch() -> None:
    n = 400
    rates = [max(1e-1 * (1 - i / 15), 0.0) for i in range(n)]
    run = make_run(
        {**at_chance(10, n), "lr": rates},
        steps_per_epoch=20,
        config="lr: 0.1\nnum_classes: 10\n",
        facts={"steps_per_epoch": 20},
    )
    diagnosis = diagnose_run(run)
    assert "schedule-unit-mismatch" in top(diagnosis)


def test_code_that_steps_in_the_wrong_unit_is_a_proof() -> None:
    audit = [
        declared("scheduler-wrong-unit", "the schedule counts batches and is stepped once per epoch (train.py:88)")
    ]
    diagnosis = diagnose_run(make_run(at_chance(10, 60), spacing=100, config="num_classes: 10\n"), audit=audit)
    assert top(diagnosis, 1) == ["schedule-unit-mismatch"]
    assert diagnosis.causes[0].grade == "is"


@pytest.mark.parametrize(("momentum", "likely"), [(0.1, True), (0.9, False)])
def test_onecycle_momentum_matters_only_if_it_changes_the_step(momentum: float, likely: bool) -> None:
    n = 100
    logged = [0.95 - 0.1 * math.sin(math.pi * i / n) for i in range(n)]
    run = make_run(
        {"train/loss": broken(n, 50), "momentum": logged},
        config=f"lr: 0.1\noptimizer: sgd\nmomentum: {momentum}\nscheduler: OneCycleLR\n",
    )
    diagnosis = diagnose_run(run)
    assert ("onecycle-overrides-momentum" in top(diagnosis)) == likely
    assert isinstance(weigh("onecycle-overrides-momentum", run), Excluded) != likely


# --- batch


def accumulated(optimizer: str, ratio: float) -> Run:
    loss = np.array(broken(120, 70))
    val = falling(120)
    return make_run(
        {"train/loss": (ratio * loss).tolist(), "val/loss": val.tolist()},
        config=f"lr: 0.1\noptimizer: {optimizer}\naccumulation_steps: 8\n",
    )


def test_gradients_summed_over_micro_batches() -> None:
    audit = [
        declared("loss-not-divided", "the loss is never divided by the 8 micro-batches (train.py:40)", "suspected")
    ]
    assert "accumulation-not-divided" in top(diagnose_run(accumulated("sgd", 8.0), audit=audit))
    for run in (accumulated("adamw", 8.0), accumulated("sgd", 1.0)):
        assert isinstance(weigh("accumulation-not-divided", run), Excluded)


def jumping(model: str, batch: int) -> Run:
    n = 60
    score = 0.5 + 0.2 * (np.arange(n) / n) + 0.12 * NOISE[:n]
    loss = 0.8 * falling(n, end=0.05, noise=0.002)
    val = 2.0 + 0.02 * np.arange(n) + 0.3 * np.abs(NOISE[:n])
    return make_run(
        {"train/loss": loss.tolist(), "val/loss": val.tolist(), "val/accuracy": score.tolist()},
        clock="epoch",
        config=f"model: {model}\nbatch_size_per_gpu: {batch}\nlr: 0.01\n",
    )


def test_batch_norm_over_two_samples() -> None:
    found = weigh("batch-norm-small-batch", jumping("resnet50", 2))
    assert not isinstance(found, Excluded)
    assert sum(e.bits for e in found) > 3
    for model, batch in (("resnet50", 64), ("vit_base_patch16_224", 2), ("my_network", 2)):
        assert isinstance(weigh("batch-norm-small-batch", jumping(model, batch)), Excluded)


# --- precision


def collapsing(after: Sequence[float], precision: str = "fp16", halvings: int = 40) -> Run:
    scale = [65536.0] * 100 + [65536.0 / 2.0 ** min(i, halvings) for i in range(1, 101)]
    loss = [*falling(100, end=1.0).tolist(), *after]
    return make_run({"train/loss": loss, "loss_scale": scale}, config=f"precision: {precision}\nlr: 0.001\n")


def test_a_collapsed_scale_that_stops_the_updates() -> None:
    diagnosis = diagnose_run(collapsing(flat(100, 1.04, 0.02)))
    assert top(diagnosis, 1) == ["loss-scale-collapse"]


def test_a_collapse_with_a_rising_loss_is_overflow_first() -> None:
    """At a scale of a quarter; at 2^-24 only gradients beyond 1e12 would overflow, and the loss is finite."""
    rising = [1.1 + 0.05 * i for i in range(100)]
    assert top(diagnose_run(collapsing(rising, halvings=18)), 1) == ["fp16-overflow"]
    assert named(diagnose_run(collapsing(rising)), "fp16-overflow") < 0.2
    assert isinstance(weigh("loss-scale-collapse", collapsing(flat(100, 1.04), "bf16")), Excluded)


def test_clipping_before_unscaling() -> None:
    audit = [declared("clip-before-unscale", "gradients are clipped before scaler.unscale_ (train.py:51)")]
    config = "optimizer: sgd\nlr: 0.1\nclip_grad: 1.0\nnum_classes: 10\nprecision: fp16\n"
    n = 60
    scale = [2.0 ** (16 + i // 10) for i in range(n)]
    norm = [2.0 * s * math.exp(0.05 * NOISE[i]) for i, s in enumerate(scale)]
    run = make_run({**at_chance(10, n), "loss_scale": scale, "grad_norm": norm}, spacing=200, config=config)
    assert top(diagnose_run(run, audit=audit), 1) == ["clip-before-unscale"]
    assert "clip-before-unscale" in top(diagnose_run(run), 3)
    steady = make_run(
        {**at_chance(10, n), "loss_scale": scale, "grad_norm": flat(n, 2.0, 0.05)}, spacing=200, config=config
    )
    assert isinstance(weigh("clip-before-unscale", steady), Excluded)
    adam = make_run(
        {**at_chance(10, n), "loss_scale": scale, "grad_norm": norm}, spacing=200, config=config.replace("sgd", "adamw")
    )
    assert named(diagnose_run(adam), "clip-before-unscale") < 0.1


@pytest.mark.parametrize(
    ("lr", "dtype", "likely"),
    [("1.0e-05", "bfloat16", True), ("1.0e-05", "float32", False), ("0.01", "bfloat16", False)],
)
def test_weights_too_coarse_for_their_updates(lr: str, dtype: str, likely: bool) -> None:
    base = make_run(at_chance(10, 60), spacing=100, config=f"lr: {lr}\noptimizer: adamw\nnum_classes: 10\n")
    kept = Checkpoint("out/last.pt", step=6000, tensors=(Tensor("model.w", (64, 64), dtype, 8192),))
    run = merge(
        [
            Reading("made.log", "made", points=_points(base), configs=base.configs),
            Reading("out/last.pt", "checkpoint", checkpoints=(kept,)),
        ],
        name="made",
        root=".",
    )
    assert ("bf16-weights-frozen" in top(diagnose_run(run))) == likely


def _points(run: Run) -> tuple[Points, ...]:
    return tuple(
        Points(s.raw, s.values.copy(), s.at.copy(), s.clock, "made.log", s.lines.copy()) for s in run.series.values()
    )


def test_sanitised_gradients_need_code_and_a_trace() -> None:
    audit = [declared("nan-to-num-grads", "nan_to_num replaces gradients that are not finite (loop.py:120)")]
    events = [Event("nan", "warning: 12 gradients were not finite", "made.log", 40)]
    run = make_run({"train/loss": broken(100, 50)}, events=events, config="lr: 0.001\n")
    found = weigh("grads-sanitised", run, audit)
    assert not isinstance(found, Excluded)
    assert sum(e.bits for e in found) >= 4
    assert isinstance(weigh("grads-sanitised", run), Excluded)
    nan = make_run({"train/loss": [*falling(50).tolist(), *[math.nan] * 20]})
    assert isinstance(weigh("grads-sanitised", nan, audit), Excluded)


# --- averaging


@pytest.mark.parametrize(
    ("dtype", "decay", "proven"), [("bf16", 0.9999, True), ("bf16", 0.99, False), ("fp32", 0.9999, False)]
)
def test_an_average_in_half_precision(dtype: str, decay: float, proven: bool) -> None:
    n = 60
    run = make_run(
        {**at_chance(10, n), "train/loss": falling(n, end=0.3).tolist()},
        spacing=1000,
        config=f"lr: 0.001\nema_decay: {decay}\nema_dtype: {dtype}\nnum_classes: 10\n",
    )
    found = weigh("ema-low-precision", run)
    assert isinstance(found, Excluded) != proven
    if proven:
        assert "ema-low-precision" in top(diagnose_run(run))


def swapped(every: int, jump: float, config: str) -> Run:
    n = 600
    loss = falling(n, end=0.5, noise=0.01)
    for i in range(every, n, every):
        loss[i : i + 3] += jump * np.array([1.0, 0.6, 0.3])[: n - i]
    evals = np.arange(every, n, every) - 0.5
    return made(
        {"train/loss": (np.arange(n), loss), "val/accuracy": (evals, 0.5 + 0.001 * np.arange(len(evals)))}, config
    )


def test_weights_that_stay_swapped_after_each_evaluation() -> None:
    found = weigh("ema-swap-not-undone", swapped(50, 0.4, "ema_decay: 0.999\nlr: 0.001\n"))
    assert not isinstance(found, Excluded)
    assert sum(e.bits for e in found) > 5
    assert isinstance(weigh("ema-swap-not-undone", swapped(50, 0.0, "ema_decay: 0.999\nlr: 0.001\n")), Excluded)
    assert isinstance(weigh("ema-swap-not-undone", swapped(50, 0.4, "lr: 0.001\n")), Excluded)


# --- clipping


def test_a_clip_that_nothing_reads() -> None:
    audit = [declared("config-key-never-read", "train.grad_clip is read by nothing (config.yaml:12)")]
    run = make_run({"train/loss": broken(100, 60), "lr": cosine(100, 120)}, config="lr: 0.001\ngrad_clip: 1.0\n")
    assert "clip-never-read" in top(diagnose_run(run, audit=audit))
    assert isinstance(weigh("clip-never-read", run), Excluded)
    calm = make_run(
        {"train/loss": broken(100, 60), "grad_norm": flat(100, 0.3, 0.02)}, config="lr: 0.001\ngrad_clip: 1.0\n"
    )
    assert isinstance(weigh("clip-never-read", calm, audit), Excluded)


# --- resume


def test_a_counter_that_goes_far_back() -> None:
    """Steps 0..299, then a resume that goes back by some steps."""

    def run(by: int, every: int) -> Run:
        at = np.concatenate([np.arange(0, 300, 2), np.arange(300 - by, 500, 2)]).astype(float)
        loss = 2.0 - 0.002 * at + 0.01 * NOISE[: len(at)]
        points = Points("train/loss", loss, at, "step", "made.log", np.arange(1, len(at) + 1, dtype=np.int64))
        events = (Event("resume", "Resuming from checkpoint", "made.log", 151),)
        config = make_run({}, config=hf_config(save_steps=every)).configs
        return merge(
            [Reading("made.log", "made", points=(points,), configs=config, events=events)], name="made", root="."
        )

    found = weigh("stale-resume", run(200, 20))
    assert not isinstance(found, Excluded)
    assert found[0].bits > 3
    assert isinstance(weigh("stale-resume", run(20, 20)), Excluded)


def continued(after: Sequence[float]) -> Run:
    curve = 3.0 * np.exp(-np.arange(300) / 80) + 0.5 + 0.01 * NOISE[:300]
    return make_run(
        {"train/loss": [*curve.tolist(), *after]},
        events=[Event("resume", "Resuming from checkpoint", "made.log", 301)],
        config="lr: 0.001\n",
    )


def test_a_resume_from_old_weights_repeats_their_course() -> None:
    old = [3.0 * math.exp(-(60 + i) / 80) + 0.5 + 0.01 * NOISE[1000 + i] for i in range(60)]
    assert top(diagnose_run(continued(old)), 1) == ["stale-resume"]
    assert isinstance(weigh("stale-resume", continued(flat(60, 1.5, 0.01))), Excluded)


def repeated(drop: float) -> Run:
    n = 300
    loss = 2.0 - 0.0005 * np.arange(n) + 0.02 * NOISE[:n]
    loss[100:200] -= drop
    loss[200:] += 0.3 if drop == 0 else 0.0
    return make_run(
        {"train/loss": loss.tolist()},
        events=[Event("resume", "Resuming from checkpoint", "made.log", 101)],
        config="lr: 0.001\n",
    )


def test_data_read_again_after_a_resume() -> None:
    assert top(diagnose_run(repeated(0.6)), 1) == ["data-repeated-after-resume"]
    assert named(diagnose_run(repeated(0.0)), "data-repeated-after-resume") == 0.0


# --- logging


def filtered(norm: list[float], config: str) -> Run:
    n = 60
    loss = [*falling(30, end=1.0).tolist(), *[0.0] * 30]
    return make_run({"train/loss": loss, "grad_norm": norm, "lr": [1e-4] * n}, spacing=10, config=config)


def test_a_nan_that_the_logger_hides() -> None:
    norm = [1.0] * 30 + [math.nan] * 30
    config = hf_config(logging_nan_inf_filter="true")
    diagnosis = diagnose_run(filtered(norm, config))
    assert top(diagnosis, 1) == ["nan-hidden-by-logger"]
    (edit,) = diagnosis.causes[0].remedies[0].edits
    assert edit.new is False
    assert isinstance(weigh("nan-hidden-by-logger", filtered([1.0] * 60, config)), Excluded)
    off = hf_config(logging_nan_inf_filter="false")
    assert isinstance(weigh("nan-hidden-by-logger", filtered(norm, off)), Excluded)
    assert isinstance(weigh("nan-hidden-by-logger", filtered(norm, "lr: 0.0001\n")), Excluded)
