"""Run arithmetic against counted loops and the numbers of the cases; loss baselines against torch and numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wheeltapper.errors import InputError
from wheeltapper.simulate.arithmetic import (
    RunLength,
    bytes_per_parameter,
    checkpoint_bytes,
    checkpoint_steps,
    effective_batch,
    eta_seconds,
    exactly,
    name_factor,
    nearest_checkpoint,
    printed,
    sampler_coverage,
    throughput,
    unreachable,
)
from wheeltapper.simulate.baselines import (
    cross_entropy_at_init,
    double_softmax_floor,
    edm_initial_loss,
    edm_initial_loss_mean,
    entropy_of_prior,
    initial_loss,
    label_smoothing_floor,
    logit_std_of,
    sedd_untrained_loss,
)


@given(st.integers(1, 300), st.integers(1, 20), st.integers(1, 5), st.integers(1, 4), st.booleans())
@settings(max_examples=100, deadline=None)
def test_steps_per_epoch_equal_a_counted_loop(n: int, batch: int, accum: int, world: int, drop: bool) -> None:
    per_rank = len(range(0, n + (-n % world), world))  # DistributedSampler pads to a multiple of the world size
    batches = [min(batch, per_rank - i) for i in range(0, per_rank, batch)]
    if drop and batches and batches[-1] < batch:
        batches.pop()
    updates = sum(1 for i in range(len(batches)) if (i + 1) % accum == 0 or i + 1 == len(batches))
    run = RunLength(n, batch, accum, world, drop_last=drop)
    assert run.micro_steps_per_epoch == len(batches)
    assert run.steps_per_epoch == updates


def test_units() -> None:
    run = RunLength(samples=1_281_167, batch=256, world=8, epochs=60, drop_last=True)
    assert run.global_batch == effective_batch(256, 1, 8) == 2048
    assert run.steps_per_epoch == 625
    assert run.total_steps == 37_500
    assert run.to_steps(8, "epochs") == 5000
    assert run.to_steps(0.1, "fraction") == 3750
    assert run.to_steps(2048 * 7, "samples") == 7
    assert RunLength(None, 4).to_steps(3, "epochs") is None
    assert RunLength(None, 4, max_steps=100).total_steps == 100
    assert RunLength(1000, 10, 4, epochs=2, partial_window=False).total_steps == 50
    assert run.samples_seen == 37_500 * 2048
    # Case 003: milestones and warm-up in steps the run does not have.
    assert unreachable([50_000, 200_000], 78_000) == (200_000,)


def test_checkpoints_that_exist() -> None:
    assert list(checkpoint_steps(40_000, 10_000)) == [10_000, 20_000, 30_000, 40_000]
    assert list(checkpoint_steps(25, 10)) == [10, 20, 25]
    assert list(checkpoint_steps(25, 10, final=False)) == [10, 20]
    assert list(checkpoint_steps(5, 10, final=False)) == []
    assert 25_000 not in checkpoint_steps(40_000, 10_000)
    assert nearest_checkpoint([10_000, 20_000, 30_000], 25_000) == 20_000
    assert nearest_checkpoint([], 5) is None
    assert 10**9 in checkpoint_steps(2 * 10**9, 10**9, final=False)  # a range, not a list of a billion


def test_throughput_of_case_004() -> None:
    """13.5 batches/s of 2048 are 27.6k img/s; "15,000 img/s" contradicts both that and 48 s an epoch."""
    wrong = throughput(
        samples_per_second=printed(15_000, -3),
        step_seconds=exactly(1 / 13.5),
        epoch_seconds=printed(48),
        samples=1_281_167,
        global_batch=2048,
        steps_per_epoch=625,
    )
    assert {m.identity for m in wrong} == {"samples/s × step time = global batch", "samples/s × epoch time = data set"}
    right = throughput(
        samples_per_second=printed(30_800, -2),
        step_seconds=printed(0.0666, 4),
        epoch_seconds=printed(48),
        samples=1_281_167,
        global_batch=2048,
        steps_per_epoch=625,
    )
    assert right == []  # an epoch of 48 s holds 41.6 s of training and the validation
    rank0 = throughput(
        samples_per_second=printed(3850),
        step_seconds=printed(0.0666, 4),
        global_batch=2048,
        factors={"world size": 8, "accumulation": 1},
    )
    assert rank0[0].factors == ("÷ world size",)
    assert name_factor(4.1, {"accumulation": 4}) == ("× accumulation",)
    assert name_factor(4.5, {"accumulation": 4}) == ()


def test_rounding_saves_an_identity() -> None:
    """0.1 s a step may be anything from .05 to .15: no contradiction can be claimed (ST-14)."""
    rates = {"samples_per_second": printed(100), "global_batch": 14}
    assert throughput(step_seconds=printed(0.1, 1), **rates) == []  # type: ignore[arg-type]
    assert throughput(step_seconds=printed(0.1, 3), **rates) != []  # type: ignore[arg-type]


def test_time_left_and_memory() -> None:
    assert eta_seconds(60, 10, 1 / 50) == 2500  # case 004: 41.7 min after epoch 10, less than the total
    assert eta_seconds(10, 20, 1) == 0.0
    assert eta_seconds(10, 1, 0) == math.inf
    assert bytes_per_parameter("adamw") == 16
    assert bytes_per_parameter("adamw", "megatron") == 18
    assert bytes_per_parameter("adamw", "pure_16bit") == 8
    assert bytes_per_parameter("sgd_momentum", ema=True) == 16
    assert bytes_per_parameter("adamw_8bit") == 10
    # Case 000: 19.9 GB at 12 bytes a parameter is the 1.66 B model, without an EMA.
    assert checkpoint_bytes(1.658e9) == pytest.approx(19.9e9, rel=1e-3)
    with pytest.raises(InputError):
        bytes_per_parameter("adamx")


def test_sampler_coverage_by_shuffling() -> None:
    assert round(sampler_coverage(8), 3) == 0.656
    rng = np.random.default_rng(0)
    n, world = 80_000, 8
    seen = np.zeros(n, dtype=bool)
    for rank in range(world):
        seen[rng.permutation(n)[rank::world]] = True
    assert seen.mean() == pytest.approx(sampler_coverage(world), abs=0.005)


def test_loss_floors_equal_torch() -> None:
    torch = pytest.importorskip("torch")
    for classes, smoothing in ((10, 0.1), (1000, 0.1), (5, 0.3)):
        target = torch.full((1, classes), smoothing / classes, dtype=torch.float64)
        target[0, 0] += 1 - smoothing
        best = torch.nn.functional.cross_entropy(target.log(), torch.tensor([0]), label_smoothing=smoothing)
        assert label_smoothing_floor(classes, smoothing) == pytest.approx(best.item(), rel=1e-9)
        perfect = torch.zeros((1, classes), dtype=torch.float64)
        perfect[0, 0] = 1.0  # probabilities taken for logits
        double = torch.nn.functional.cross_entropy(perfect, torch.tensor([0]))
        assert double_softmax_floor(classes) == pytest.approx(double.item(), rel=1e-9)
    assert label_smoothing_floor(10, 0.0) == 0.0


def test_initial_losses() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 0.8, (4000, 200))
    first = float(np.mean(np.log(np.exp(logits).sum(1)) - logits[:, 0]))
    assert cross_entropy_at_init(200, 0.8) == pytest.approx(first, abs=0.05)
    assert logit_std_of(cross_entropy_at_init(50, 1.3), 50) == pytest.approx(1.3)
    assert logit_std_of(1.0, 50) is None
    assert entropy_of_prior([1, 1, 1, 1]) == pytest.approx(math.log(4))
    assert entropy_of_prior([9, 1]) == pytest.approx(0.3251, abs=1e-4)
    assert initial_loss("lm", 50_257) == pytest.approx(10.825, abs=1e-3)
    assert initial_loss("triplet", margin=0.3) == 0.3
    assert initial_loss("gan_discriminator") == pytest.approx(1.386, abs=1e-3)
    with pytest.raises(InputError):
        initial_loss("cross_entropy")
    with pytest.raises(InputError):
        initial_loss("nonsense")


def test_diffusion_baselines() -> None:
    """CASES §3: an untrained SEDD with 36 tokens; DIF-02: EDM's first loss reads off the data's scale."""
    got = [sedd_untrained_loss(36, s, 1e-4) for s in (0.8, 0.5, 0.3)]
    assert got == pytest.approx([1.973, 1.410, 0.928], abs=6e-4)
    exact = sedd_untrained_loss(36, 0.8, 1e-4)
    assert sedd_untrained_loss(36, 0.8, 1e-4, c=1.0 + 1e-9) == pytest.approx(exact, rel=1e-6)
    assert sedd_untrained_loss(36, 0.8, c=0.5) < exact
    for sigma in (0.01, 0.5, 80.0):
        assert edm_initial_loss(sigma, 0.5) == pytest.approx(1.0)
    assert edm_initial_loss(1e4, 1.0) == pytest.approx(4.0, rel=1e-3)
    assert edm_initial_loss_mean(0.5) == pytest.approx(1.0)
    sigma = np.exp(np.random.default_rng(1).normal(-1.2, 1.2, 400_000))
    assert edm_initial_loss_mean(1.0) == pytest.approx(
        float(np.mean((sigma**2 * 4 + 0.25) / (sigma**2 + 0.25))), rel=0.01
    )
