"""What a state may hold: masks of -inf, running statistics spoiled by nan, a model that is not the one that was saved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from loop import Loop  # noqa: E402

from wheeltapper.errors import InputError  # noqa: E402
from wheeltapper.guard import Guard  # noqa: E402


def kinds(guard: Guard) -> list[str]:
    return [i.kind for i in guard.incidents]


def masked(seed: int) -> Loop:
    """As causal attention keeps its mask."""
    loop = Loop(seed)
    for model in (loop.model, loop.ema.module):
        model.register_buffer("mask", torch.full((4, 4), float("-inf")).triu(1))
    return loop


def test_a_mask_of_minus_infinity_does_not_stand_in_the_way_of_a_rollback(tmp_path: Path) -> None:
    loop, fresh = masked(0), masked(1)
    guard = loop.guard("rollback", tmp_path, snapshot_every=20)
    loop.run(80, guard, poison=(60,))
    guard.close()
    assert "rollback" in kinds(guard)
    assert "limit" not in kinds(guard)
    assert all(torch.isfinite(p).all() for p in loop.model.parameters())
    assert list(tmp_path.glob("good-*.pt"))
    assert fresh.guard("rollback", tmp_path).resume() is not None


def test_with_no_sound_state_it_says_so() -> None:
    loop = Loop()
    guard = loop.guard("rollback")
    loop.run(2, guard, poison=(0,))
    guard.close()
    text = next(i.text for i in guard.incidents if i.kind == "limit")
    assert text.startswith("There is no sound state to go back to.")


@pytest.mark.parametrize("policy", ["watch", "skip", "rollback"])
def test_statistics_spoiled_in_a_step_that_the_scaler_skipped(policy: str) -> None:
    loop = Loop(scaler=torch.amp.GradScaler("cpu", init_scale=1024.0))
    guard = loop.guard(policy, every=10, snapshot_every=20)
    loop.run(60, guard, poison=(45,))
    guard.close()
    sound = all(torch.isfinite(b).all() for b in loop.model.buffers())
    told = [i.text for i in guard.incidents if i.kind == "weights"]
    assert sound is (policy != "watch")
    assert bool(told) is (policy != "skip")
    assert all("buffers" in t for t in told)


@pytest.mark.parametrize("poison", [40, 45])
@pytest.mark.parametrize("scaled", [False, True])
def test_what_a_skip_has_mended_is_not_told(poison: int, scaled: bool) -> None:
    """A look falls on step 40 itself."""
    loop = Loop(scaler=torch.amp.GradScaler("cpu", init_scale=1024.0) if scaled else None)
    guard = loop.guard("skip", every=5)
    loop.run(60, guard, poison=(poison,))
    guard.close()
    assert "weights" not in kinds(guard)
    assert all(torch.isfinite(b).all() for b in loop.model.buffers())


def test_gradients_that_are_nan_are_not_called_absent() -> None:
    loop = Loop()
    guard = loop.guard(every=10)
    loop.run(60, guard, poison=(5,))
    guard.close()
    assert "weights" in kinds(guard)
    assert "no-gradient" not in kinds(guard)


def test_resume_refuses_another_model(tmp_path: Path) -> None:
    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=10)
    loop.run(60, guard)
    guard.close()
    model = torch.nn.Linear(6, 24)
    before = model.weight.clone()
    other = Guard(model, torch.optim.AdamW(model.parameters()), policy="rollback", run_dir=tmp_path)
    with pytest.raises(InputError, match="another model"):
        other.resume()
    assert torch.equal(model.weight, before)


@pytest.mark.parametrize("given", [np.float32(0.5), np.array(0.5), torch.tensor([0.25, 0.75]), torch.tensor([0.5])])
def test_a_loss_in_another_shape_is_still_a_loss(given: Any) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer)
    model(torch.ones(1, 2)).sum().backward()
    guard.step(given)
    optimizer.step()
    guard.close()
    assert [r.loss for r in guard.history] == [0.5]
    assert not guard.incidents


def test_what_is_no_loss_is_not_called_nan() -> None:
    loop = Loop()
    guard = loop.guard("stop")
    guard.step({"loss": 1.0})
    loop.run(3, guard)
    assert kinds(guard) == ["guard"]
    assert guard.passive is not None
    assert "takes the loss as a tensor or a number, and was given a dict" in guard.passive
