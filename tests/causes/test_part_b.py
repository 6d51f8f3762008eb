"""Causes of data, model, evaluation, objective, curriculum and system: each wins on a made run of its own, and not
on one that looks like it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from wheeltapper.causes import Case, Excluded, causes, remedies_of, weighed
from wheeltapper.causes.data_not_shuffled import order_correlation
from wheeltapper.diagnosis.diagnose import diagnose_run, rank_causes
from wheeltapper.diagnosis.echo import without_echoes
from wheeltapper.diagnosis.model import SOMETHING_ELSE
from wheeltapper.finding import Finding
from wheeltapper.run.model import Run, Segment
from wheeltapper.signals import Signals
from wheeltapper.signs import ask, signs
from wheeltapper.sources.record import Event
from wheeltapper.testing import make_run

BY_ID = {cause.ID: cause for cause in causes()}
RNG = np.random.default_rng(7)
JITTER = [0.01 * ((i * 7) % 5) for i in range(400)]


@dataclass(frozen=True)
class Made:
    run: Run
    extra: tuple[Finding, ...] = ()
    audit: tuple[Finding, ...] = ()


def ill(sign: str, series: str | None = None, onset: float | None = None, **numbers: float) -> Finding:
    return Finding(sign, f"{sign} was seen", "ill", "is", series=series, clock="step", onset=onset, numbers=numbers)


def audited(check: str, grade: Any = "is") -> Finding:
    return Finding(check, f"the code shows {check}", "watch", grade)


def case_of(made: Made) -> Case:
    signals = Signals(made.run)
    found = [a for sign in signs() for a in ask(sign, signals) if isinstance(a, Finding)]
    return Case(signals, (*without_echoes(found), *made.extra), made.audit)


def top(made: Made, n: int = 2) -> list[str]:
    """The n most probable causes; "something else" takes no place."""
    ranked, _ = rank_causes(case_of(made))
    return [c.id for c in ranked if c.id != SOMETHING_ELSE][:n]


def run(series: dict[str, Any], **given: Any) -> Run:
    return make_run({name: list(values) for name, values in series.items()}, **given)


def flat(level: float, n: int, scale: float = 1.0) -> list[float]:
    return [level + scale * JITTER[i] for i in range(n)]


def falling(start: float, floor: float, n: int, rate: float = 0.95) -> list[float]:
    return [floor + (start - floor) * rate**i * (1 + JITTER[i]) for i in range(n)]


def at_chance(train: list[float], **series: Any) -> Run:
    n = len(train)
    scores = {"train/loss": train, "val/loss": flat(2.30, n, 0.1), "val/accuracy": flat(0.1, n, 0.1), "lr": [1e-3] * n}
    return run({**scores, **series}, config="num_classes: 10\nlr: 0.001\n")


def gap(first: float, last: float) -> Made:
    train = [3.0 * 0.95**i for i in range(60)]
    ratio = np.linspace(first, last, 60)
    made = run({"train/loss": train, "val/loss": [a * b for a, b in zip(train, ratio, strict=True)]})
    return Made(made, (ill("train-val-gap", "val/loss", 5.0),))


def epochs_of(same: bool) -> Made:
    pattern = RNG.normal(0, 0.05, 40)
    rows = [2.0 - 0.1 * e + (pattern if same else RNG.normal(0, 0.05, 40)) for e in range(6)]
    made = run({"train/loss": np.concatenate(rows)}, steps_per_epoch=40)
    return Made(made, (ill("epoch-sawtooth", "train/loss"),))


def weights(weight: list[float], grad: list[float]) -> Made:
    made = run({"train/loss": flat(2.3, 30), "weight_norm/head": weight, "grad_norm/head": grad, "lr": [1e-3] * 30})
    return Made(made, (ill("stuck-from-start", "train/loss", 0.0),))


def diverging(**series: list[float]) -> Run:
    loss = [*falling(6.9, 3.0, 60), *[4.0 + 0.2 * i for i in range(40)]]
    return run({"train/loss": loss, **series}, config="num_classes: 1000\n")


def early_divergence(first: float) -> Made:
    loss = [first, *[first * (0.4 + 0.5 * 0.7**i) for i in range(10)], *[first * (0.5 + 0.1 * i) for i in range(60)]]
    return Made(run({"train/loss": loss}, config="num_classes: 1000\n"))


def never_left_zero(config: str | None = None, train: list[float] | None = None) -> Made:
    scores = {"val/map": [0.0002, 0.0003] * 10, "train/loss": train or falling(11.0, 0.7, 20, 0.8)}
    return Made(run(scores, config=config))


def pipelines(mean: str) -> str:
    return (
        "data:\n  train:\n    pipeline:\n    - {type: Normalize, mean: [123.7, 116.3, 103.5], std: [58.4, 57.1, 57.4]}\n"
        f"  val:\n    pipeline:\n    - {{type: Normalize, mean: {mean}, std: [58.4, 57.1, 57.4]}}\n"
    )


SR = (
    "name: x2\nscale: 2\nnum_gpu: 1\nnetwork_g: {type: net}\npath: {experiments_root: x}\n"
    "datasets: {train: {type: pairedimagedataset, dataroot_gt: a, dataroot_lq: b, lq_size: 64}}\n"
    "train: {total_iter: 40000, optim_g: {type: AdamW, lr: 0.0002}}\nval: {val_enabled: true, val_freq: 1000}\n"
)


def restored(psnr: float, train: list[float]) -> Made:
    return Made(run({"val/psnr": flat(psnr, 20), "train/loss": train}, config=SR))


def best_so_far(worse: bool) -> Made:
    values = [0.31, 0.31, 0.42, 0.42, 0.42, 0.55, 0.55, 0.613, *[0.613] * 8]
    if worse:
        values[3] = 0.40
    return Made(run({"val/accuracy": values}), (ill("constant-metric", "val/accuracy", 7.0),))


def calibration(accuracy_falls: bool) -> Made:
    """A poor accuracy, so that the rising loss makes the run ill; it holds, or it falls."""
    up = [0.05 + 0.2 * (1 - 0.8**i) for i in range(20)]
    after = [0.25 - (0.007 * i if accuracy_falls else -0.0005 * i) for i in range(20)]
    loss = [*falling(5.0, 3.5, 20, 0.8), *[3.6 + 0.08 * i for i in range(20)]]
    return Made(run({"train/loss": falling(5.0, 0.2, 40, 0.9), "val/loss": loss, "val/accuracy": [*up, *after]}))


def trivial() -> Run:
    n = 20
    series = {"train/loss": [15.9 - 0.2 * i for i in range(n)], "loss_q0": [30.0] * n, "loss_q3": [12.0] * n}
    return run(series, spacing=500, config="lr: 0.0001\n")


def vae(kl: list[float]) -> Made:
    series = {"train/loss": flat(101, 40), "train/loss_kl": kl, "train/loss_recon": flat(100, 40)}
    return Made(run(series), (ill("plateau", "train/loss", 5.0),))


def curriculum(step: int) -> Made:
    up = [0.05 + 0.02 * i for i in range(30)]
    score = [*up, 0.06, 0.05, *flat(0.05, 18, 0.1)]
    difficulty = [0.1 if i < step else 0.9 for i in range(50)]
    return Made(run({"val/accuracy": score, "train/loss": falling(2.0, 0.5, 50), "difficulty": difficulty}))


def gan(recall: list[float]) -> Made:
    n = len(recall)
    fid = [*falling(200.0, 20.0, n // 2, 0.7), *[30.0 + 8 * i for i in range(n - n // 2)]]
    return Made(run({"d_loss": flat(0.6, n), "g_loss": flat(1.0, n), "val/fid": fid, "val/recall": recall}))


def slow(series: dict[str, list[float]], config: str = "world_size: 8\n", **given: Any) -> Made:
    made = run({"train/loss": falling(3.0, 1.0, 40), **series}, config=config, **given)
    return Made(made, (ill("throughput-fall", "throughput", 20.0),))


def ranks(slowest: float) -> Made:
    made = slow({f"rank{i}_time": [1.0 if i else slowest] * 40 for i in range(4)})
    changed = {
        name: replace(s, quantity="duration", rank=int(s.raw[4])) if s.raw.startswith("rank") else s
        for name, s in made.run.series.items()
    }
    return replace(made, run=replace(made.run, series=changed))


def resumed(at: float, *versions: str) -> Made:
    events = [Event("message", f"torch: {v}", "made.log", 10 * i + 1) for i, v in enumerate(versions)]
    made = slow({}, events=events)
    later = Segment(1, "step", at, 39.0, "resume", "made.log", 20, "the log says so")
    return replace(made, run=replace(made.run, segments=(later,)))


def died(kind: Any, text: str, total: int) -> Made:
    event = Event(kind, text, "made.log", 41, 39.0, "step")
    made = run({"train/loss": falling(3.0, 1.0, 40)}, events=[event], facts={"total_steps": total})
    return Made(made, (ill("crashed", None, 39.0),))


def shuffled(train: list[float], score: list[float]) -> Made:
    n = len(train)
    series = {"train/loss": train, "val/loss": flat(2.30, n, 0.1), "val/accuracy": score, "lr": [0.1] * n}
    return Made(run(series, config="num_classes: 10\nlr: 0.1\noptimizer: sgd\n"))


def boxes(score: float) -> Made:
    series = {"train/box_loss": [0.0] * 30, "train/cls_loss": falling(5, 0.1, 30), "val/map50": flat(score, 30, 0.01)}
    return Made(run(series))


def jump(norm: list[float]) -> Made:
    return Made(run({"train/loss": [*falling(3.0, 1.0, 60), *flat(1.45, 40)], "grad_norm": norm}))


def to_nan(rise: bool) -> Made:
    last = [1.0, 1.4, 3.0, 8.0] if rise else flat(1.0, 4)
    return Made(run({"train/loss": [*flat(1.0, 60), *last, *[float("nan")] * 20]}))


def decayed(size: float) -> Made:
    config = f"optimizer: adamw\nlr: 0.001\nweight_decay: {size}\n"
    return Made(run({"train/loss": [*falling(3.0, 1.5, 40), *[1.6 + 0.05 * i for i in range(40)]]}, config=config))


def terms(edge: list[float]) -> Made:
    rest = falling(1.0, 0.01, 80)
    total = [a + b for a, b in zip(rest, edge, strict=True)]
    series = {"train/loss": total, "train/loss_edge": edge, "train/loss_inner": rest}
    return Made(run(series), (ill("plateau", "train/loss", 20.0),))


def returns(fall: bool) -> Made:
    up = [10.0 * i + JITTER[i] for i in range(60)]
    down = flat(5.0, 40, 50.0) if fall else [600 + 5.0 * i for i in range(40)]
    return Made(run({"return": [*up, *down], "policy_loss": flat(0.0, 100)}))


def plateaued(rate: float) -> Made:
    loss = [2.0 * rate**i + 0.1 + JITTER[i % 5] for i in range(2500)]
    made = run(
        {"train/loss": loss, "lr": [1e-4 - 1e-8 * i for i in range(2500)]},
        steps_per_epoch=100,
        facts={"total_steps": 20000},
    )
    return Made(made)


Build = Callable[[], Made]
# cause: (a run that has it, one that looks like it and has not)
PAIRS: dict[str, tuple[Build, Build]] = {
    "dead-input-channels": (
        lambda: Made(at_chance(flat(2.303, 30, 0.1), **{"input/std": [0.0] * 30})),
        lambda: Made(at_chance(falling(2.3, 0.3, 30, 0.8))),
    ),
    "data-not-shuffled": (lambda: epochs_of(same=True), lambda: epochs_of(same=False)),
    "per-rank-seed": (
        lambda: Made(
            run({"train/loss": falling(3, 1, 40)}, config="world_size: 8\n"),
            (ill("too-slow"),),
            (audited("per-rank-sampler-seed"),),
        ),
        lambda: Made(
            run({"train/loss": falling(3, 1, 40)}, config="world_size: 1\n"),
            (ill("too-slow"),),
            (audited("per-rank-sampler-seed"),),
        ),
    ),
    "train-val-leak": (
        lambda: Made(
            run({"val/accuracy": flat(0.95, 20, 0.1), "test/accuracy": flat(0.6, 20, 0.1)}),
            (ill("val-below-train", "val/loss"),),
        ),
        lambda: Made(
            run({"val/accuracy": flat(0.95, 20, 0.1), "test/accuracy": flat(0.949, 20, 0.1)}, config="dropout: 0.2\n"),
            (ill("val-below-train", "val/loss"),),
        ),
    ),
    "class-imbalance": (
        lambda: Made(run({"val/accuracy": [0.9372] * 12, "val/f1": [0.0] * 12}, config="num_classes: 2\n")),
        lambda: Made(run({"val/accuracy": [0.9372] * 12, "val/f1": flat(0.8, 12, 0.1)}, config="num_classes: 2\n")),
    ),
    "all-labels-masked": (
        lambda: Made(run({"train/loss": [0.0] * 12})),
        lambda: Made(run({"train/loss": [1.9, 1.5, 1.2, *[0.0] * 12]})),
    ),
    "train-val-shift": (lambda: gap(2.0, 2.4), lambda: gap(1.0, 6.0)),
    "params-not-in-optimizer": (
        lambda: weights([12.5] * 30, flat(0.8, 30)),
        lambda: weights(flat(12.5, 30), flat(0.8, 30)),
    ),
    "frozen-parameters": (lambda: weights([12.5] * 30, [0.0] * 30), lambda: weights(flat(12.5, 30), flat(0.8, 30))),
    "dead-network": (
        lambda: Made(at_chance(flat(2.303, 40, 0.1), grad_norm=[*flat(1.0, 15), *[1e-12] * 25])),
        lambda: Made(at_chance(flat(2.303, 40, 0.1), grad_norm=flat(1.0, 40))),
    ),
    "init-too-large": (lambda: early_divergence(60.0), lambda: early_divergence(6.95)),
    "attention-logit-growth": (
        lambda: Made(diverging(attn_max_logit=[5.0 * 1.05**i for i in range(100)])),
        lambda: Made(diverging(attn_max_logit=flat(5.0, 100))),
    ),
    "output-collapse": (
        lambda: Made(
            run({"val/accuracy": [*[0.1 + 0.03 * i for i in range(20)], *flat(0.1, 20, 0.1)],
                 "feature_std": [*flat(1.0, 20), *flat(0.001, 20, 0.001)]})
        ),
        lambda: Made(
            run({"val/accuracy": [*[0.1 + 0.03 * i for i in range(20)], *flat(0.1, 20, 0.1)],
                 "feature_std": flat(1.0, 40)})
        ),
    ),
    "eval-in-train-mode": (
        lambda: replace(gap(1.2, 6.0), audit=(audited("val-in-train-mode"),)),
        lambda: gap(1.2, 6.0),
    ),
    "eval-normalisation-mismatch": (
        lambda: never_left_zero(pipelines("[0.485, 0.456, 0.406]")),
        lambda: never_left_zero(pipelines("[123.7, 116.3, 103.5]")),
    ),
    "eval-resized-images": (
        lambda: restored(11.3, falling(0.1, 0.017, 20)),
        lambda: Made(run({"val/psnr": flat(33.0, 20), "train/loss": [0.02, *[float("nan")] * 19]}, config=SR)),
    ),
    "best-so-far-logged": (lambda: best_so_far(worse=False), lambda: best_so_far(worse=True)),
    "over-confidence": (lambda: calibration(accuracy_falls=False), lambda: calibration(accuracy_falls=True)),
    "objective-mismatch": (
        lambda: Made(trivial(), audit=(audited("objective-preconditioner-mismatch", "suspected"),)),
        lambda: Made(run({"train/loss": [*falling(3.0, 1.0, 40), *[2 + 0.1 * i for i in range(30)]]})),
    ),
    "sigma-max-cut": (
        lambda: never_left_zero("graph: {type: absorb}\nsigma_max: 0.5\n"),
        lambda: never_left_zero("sigma_max: 0.5\nsigma_data: 0.5\n"),
    ),
    "sigma-data-mismatch": (
        lambda: Made(run({"train/loss": falling(3.0, 0.2, 40)}, config="sigma_data: 0.5\n"), (ill("first-loss-odd"),)),
        lambda: Made(run({"train/loss": falling(1.03, 0.2, 40)}, config="sigma_data: 0.5\n"), (ill("first-loss-odd"),)),
    ),
    "loss-weight-runaway": (
        lambda: Made(diverging(loss_weight_edge=[1.0 * 1.1**i for i in range(100)])),
        lambda: Made(diverging(loss_weight_edge=[1.0] * 100)),
    ),
    "kl-collapse": (
        lambda: vae([5.0 * 0.5**i for i in range(40)]),
        lambda: vae(flat(5.0, 40)),
    ),
    "curriculum-too-hard": (lambda: curriculum(30), lambda: curriculum(45)),
    "mode-collapse": (lambda: gan([*flat(0.4, 20, 0.1), *flat(0.02, 20, 0.1)]), lambda: gan(flat(0.4, 40, 0.1))),
    "memory-leak": (
        lambda: Made(run({"gpu_mem": [10 + 0.2 * i for i in range(100)]}), (ill("memory-growth", "memory"),)),
        lambda: Made(run({"gpu_mem": flat(10, 100)}), (ill("memory-growth", "memory"),)),
    ),
    "slow-data-loader": (
        lambda: slow({"data_time": flat(0.5, 40), "time": flat(1.0, 40)}),
        lambda: slow({"data_time": flat(0.01, 40, 0.1), "time": flat(1.0, 40)}),
    ),
    "slow-node": (lambda: ranks(1.4), lambda: ranks(1.0)),
    "out-of-memory": (
        lambda: died("oom", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", 400),
        lambda: died("crash", "KeyError: 'labels'", 400),
    ),
    "hardware-fault": (
        lambda: died("crash", "NVRM: Xid (PCI:0000:01:00): 79, GPU has fallen off the bus.", 400),
        lambda: died("crash", "RuntimeError: NCCL timeout", 400),
    ),
    "environment-changed": (lambda: resumed(20.0, "2.1.0", "2.6.0"), lambda: resumed(5.0, "2.1.0", "2.1.0")),
    "crash-at-end": (
        lambda: died("crash", "AttributeError: module 'wandb' has no attribute 'log'", 40),
        lambda: died("crash", "AttributeError: module 'wandb' has no attribute 'log'", 4000),
    ),
    # Written before; their look-alikes are asked here too.
    "labels-shuffled": (
        lambda: shuffled(flat(2.303, 30, 0.1), flat(0.1, 30, 0.1)),
        lambda: shuffled(falling(2.3, 1.0, 30), [*[0.1 + 0.04 * i for i in range(15)], *flat(0.1, 15, 0.1)]),
    ),
    "labels-broken": (lambda: boxes(0.0), lambda: replace(boxes(0.6), extra=(ill("train-val-gap"),))),
    "bad-data-from-step": (
        lambda: jump(flat(1.0, 100)),
        lambda: jump([*flat(1.0, 50), *[1.0 * 1.5**i for i in range(10)], *flat(50.0, 40)]),
    ),
    "nan-batch": (lambda: to_nan(rise=False), lambda: to_nan(rise=True)),
    "weight-decay-too-strong": (lambda: decayed(5.0), lambda: decayed(0.05)),
    "eval-broken": (never_left_zero, lambda: never_left_zero(train=flat(11.0, 20))),
    "metric-numerically-broken": (
        lambda: Made(run({"val/fid": [1.2e57, 8.2e51, -3.1e68, -2.7e57, 1e40, 1e50]})),
        lambda: Made(run({"val/fid": [20.0, 22.0, 60.0, 120.0, 200.0, 300.0, 320.0, 350.0]})),
    ),
    "loss-terms-conflict": (lambda: terms([0.06 + 0.003 * i for i in range(80)]), lambda: terms(falling(0.5, 0.0, 80))),
    "discriminator-wins": (
        lambda: Made(run({"D_A": [0.2] * 30 + [0.002] * 70, "G_A": [0.4] * 30 + [0.99] * 70})),
        lambda: gan([*flat(0.4, 20, 0.1), *flat(0.02, 20, 0.1)]),
    ),
    "policy-collapse": (lambda: returns(fall=True), lambda: curriculum(30)),
    "training-longer-than-useful": (lambda: plateaued(0.97), lambda: gap(1.0, 6.0)),
    "launch-loop": (
        lambda: Made(run({"train/loss": [1.0, 0.9] * 15}, at=[0, 1] * 15)),
        lambda: Made(run({"train/loss": [*falling(3.0, 1.0, 40), *[2 + 0.1 * i for i in range(30)]]})),
    ),
}  # fmt: skip


# A log can only hint at these: the report names them, and says that something else is as likely.
HINTS = {"labels-shuffled", "nan-batch", "bad-data-from-step"}


@pytest.mark.parametrize("cause", PAIRS)
def test_wins_on_its_own_run(cause: str) -> None:
    made = PAIRS[cause][0]()
    ranked, _ = rank_causes(case_of(made))
    shares = {c.id: c.probability for c in ranked}
    assert cause in top(made), shares
    assert cause in HINTS or shares[cause] > shares[SOMETHING_ELSE], shares


@pytest.mark.parametrize("cause", PAIRS)
def test_does_not_win_on_a_look_alike(cause: str) -> None:
    ranked, _ = rank_causes(case_of(PAIRS[cause][1]()))
    shares = {c.id: c.probability for c in ranked}
    assert shares.get(cause, 0.0) < 0.3, shares
    assert shares.get(cause, 0.0) < max(shares.values(), default=1.0), shares


HEALTHY = {
    "train/loss": falling(3.0, 0.5, 60),
    "val/loss": falling(3.0, 0.7, 60),
    "val/accuracy": [0.1 + 0.7 * (1 - 0.93**i) + 0.1 * JITTER[i] for i in range(60)],
    "lr": [1e-3] * 60,
    "grad_norm": flat(1.0, 60),
}


def test_a_healthy_run_has_no_cause_and_no_excuse() -> None:
    diagnosis = diagnose_run(run(HEALTHY, config="num_classes: 10\nlr: 0.001\n"))
    assert diagnosis.verdict == "sound"
    assert diagnosis.causes == ()
    assert [e.id for e in diagnosis.expected if e.id in dict(NORMALS)] == []


@pytest.mark.parametrize("cause", [c for c in PAIRS if BY_ID[c].PRIOR > -1])
def test_priors_stay_below_something_else(cause: str) -> None:
    """A cause that starts near even odds must need its sign to be seen at all."""
    assert isinstance(weighed(BY_ID[cause], case_of(Made(run(HEALTHY)))), Excluded)


def test_order_of_batches_is_only_read_from_the_same_batches() -> None:
    rows = np.concatenate([RNG.normal(0, 0.05, 40) for _ in range(6)])
    loss = run({"train/loss": 2.0 + rows}, steps_per_epoch=39.5).series["train/loss"]
    assert order_correlation(loss) is None, "positions drift against the epoch, so no two rows are the same batch"


def test_a_remedy_of_memory_keeps_the_effective_batch() -> None:
    made = died("oom", "CUDA out of memory", 400)
    config = "per_device_train_batch_size: 8\ngradient_accumulation_steps: 4\n"
    remedy = remedies_of(BY_ID["out-of-memory"], Case(Signals(run(HEALTHY, config=config)), made.extra))[0]
    edits = {e.knob: (e.old, e.new) for e in remedy.edits}
    assert edits == {"batch.per_device": (8, 4), "batch.accumulation": (4, 8)}


def test_sigma_data_is_read_off_the_first_loss() -> None:
    made = PAIRS["sigma-data-mismatch"][0]()
    edit = remedies_of(BY_ID["sigma-data-mismatch"], case_of(made))[0].edits[0]
    from wheeltapper.simulate.baselines import edm_initial_loss_mean

    assert edm_initial_loss_mean(edit.new, 0.5) == pytest.approx(3.0, rel=0.05)


def inverted(config: str) -> Run:
    return run({"train/loss": falling(2.0, 1.0, 30), "val/loss": falling(1.5, 0.6, 30)}, config=config)


def detector(*zeros: float) -> Run:
    return run({"val/map": [*zeros, *[0.05 + 0.02 * i for i in range(20)]]})


def staged(**series: list[float]) -> Run:
    return run({"train/loss": [*flat(1.0, 40), *flat(2.0, 40)], **series})


def wavy(n: int, peak: int) -> list[float]:
    up = [0.3 + 0.5 * (1 - 0.8**i) for i in range(n)]
    noise = [0.01 * np.sin(9.7 * i) for i in range(n)]
    noise[peak] = 0.012
    return [a + b for a, b in zip(up, noise, strict=True)]


NORMALS: list[tuple[str, tuple[Callable[[], Run], Callable[[], Run]]]] = [
    ("normal-val-better-than-train", (lambda: inverted("mixup: 0.8\n"), lambda: inverted("mixup: 0.0\nlr: 0.1\n"))),
    (
        "normal-curriculum-rise",
        (lambda: staged(difficulty=[0.1] * 40 + [0.9] * 40), lambda: staged()),
    ),
    (
        "normal-diffusion-noise",
        (
            lambda: run({"train/loss": 1 + 0.3 * np.abs(RNG.normal(0, 1, 200))}, config="sigma_data: 0.5\n"),
            lambda: run({"train/loss": 1 + 0.3 * np.abs(RNG.normal(0, 1, 200))}, config="lr: 0.5\n"),
        ),
    ),
    (
        "normal-gan-losses",
        (
            lambda: run({"d_loss": flat(0.6, 40), "g_loss": flat(1.0, 40)}),
            lambda: run({"D_A": [0.2] * 30 + [0.002] * 70, "G_A": [0.4] * 30 + [0.99] * 70}),
        ),
    ),
    ("normal-policy-loss", (lambda: returns(fall=False).run, lambda: returns(fall=True).run)),
    (
        "normal-single-class-loss",
        (
            lambda: run({"train/cls_loss": [0.0] * 20, "train/box_loss": falling(1, 0.1, 20), "val/map": [0.6] * 20}),
            lambda: run({"train/cls_loss": [0.0] * 20, "train/box_loss": falling(1, 0.1, 20), "val/map": [0.0] * 20}),
        ),
    ),
    (
        "normal-loss-units",
        (
            lambda: run(
                {"train/loss": [16 * v for v in falling(3, 0.1, 20, 0.8)], "val/loss": falling(3, 0.1, 20, 0.8)}
            ),
            lambda: inverted("lr: 0.1\n"),
        ),
    ),
    (
        "normal-label-smoothing-floor",
        (
            lambda: run({"train/loss": falling(6.9, 1.3, 80)}, config="num_classes: 1000\nlabel_smoothing: 0.1\n"),
            lambda: run({"train/loss": falling(6.9, 4.0, 80)}, config="num_classes: 1000\nlabel_smoothing: 0.1\n"),
        ),
    ),
    (
        "normal-first-evals-chaotic",
        (
            lambda: run({"val/loss": [2.0, 9.0, 1.9, *falling(1.8, 0.5, 30)]}),
            lambda: run({"val/loss": [2.0, 1.95, 1.9, *falling(1.8, 0.5, 30)]}),
        ),
    ),
    ("normal-late-map", (lambda: detector(0.0, 0.0, 0.001, 0.004), lambda: detector(0.03))),
    (
        "normal-resize-jump",
        (lambda: staged(image_size=[128.0] * 40 + [224.0] * 40), lambda: staged(image_size=[128.0] * 80)),
    ),
    (
        "normal-noise-plateau",
        (
            lambda: run({"val/accuracy": wavy(60, 45)}),
            lambda: run({"val/accuracy": [0.1 + 0.01 * i for i in range(60)]}),
        ),
    ),
]


@pytest.mark.parametrize(("normal", "pair"), NORMALS, ids=[name for name, _ in NORMALS])
def test_normal_patterns_are_named_where_they_are(normal: str, pair: tuple[Any, Any]) -> None:
    expected = BY_ID[normal].expect(case_of(Made(pair[0]())))
    assert "expected" in expected
    assert BY_ID[normal].expect(case_of(Made(pair[1]()))) == ""
