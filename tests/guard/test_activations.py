"""What the modules put out, on request: true numbers at the looks, no trace of it elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wheeltapper.errors import InputError  # noqa: E402
from wheeltapper.guard import Guard  # noqa: E402


def net() -> Any:
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1))


def train(model: Any, steps: int = 5, scale: float = 1.0, guarded: bool = True, **options: Any) -> tuple[Any, Any]:
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    guard = Guard(model, optimizer, every=2, **options) if guarded else None
    for _ in range(steps):
        x = scale * torch.randn(16, 4)
        loss = model(x).square().mean()
        with torch.no_grad():
            model(1e6 * x)  # an evaluation between the steps is no part of them
        optimizer.zero_grad()
        loss.backward()
        if guard:
            guard.step(loss)
        optimizer.step()
    if guard:
        guard.close()
    return guard, [p.detach().clone() for p in model.parameters()] + [torch.get_rng_state()]


def test_the_numbers_are_true_and_nothing_else_changes() -> None:
    model = net()
    outs: dict[int, list[Any]] = {1: [], 4: []}
    for k, kept in outs.items():
        model[k].register_forward_hook(
            lambda _m, _a, out, kept=kept: kept.append(out.detach().clone()) if torch.is_grad_enabled() else None
        )
    guard, mine = train(model, activations=True)
    assert guard.passive is None
    assert guard.incidents == []
    looks = [t.outputs for t in guard.tensors]
    assert [list(o) for o in looks] == [["0", "1", "2", "3", "4", "5"]] * 3
    relu, tanh = outs[1][4], outs[4][4]
    assert looks[-1]["1"]["rms"] == pytest.approx(float(relu.square().mean().sqrt()), rel=1e-5)
    assert looks[-1]["1"]["zeros"] == pytest.approx(float((relu == 0).float().mean()))
    assert looks[-1]["4"]["saturated"] == pytest.approx(float((tanh.abs() >= 0.995).float().mean()))
    assert np.isnan(looks[-1]["1"]["saturated"])
    assert all(len(m._forward_hooks) == (1 if k in outs else 0) for k, m in enumerate(model))  # ours are off
    _, other = train(net(), guarded=False)
    assert all(torch.equal(a, b) for a, b in zip(mine, other, strict=True))


def test_what_is_told_of_them() -> None:
    model = net()
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(-1.0)
    guard, _ = train(model, activations=["1", "4"])
    assert [(i.kind, i.facts["names"]) for i in guard.incidents if i.kind == "dead-output"] == [("dead-output", ["1"])]
    assert set(guard.tensors[-1].outputs) == {"1", "4"}
    guard, _ = train(net(), steps=1, scale=float("nan"), activations="*")
    told = next(i for i in guard.incidents if i.kind == "activations")
    assert told.severity == "error"
    assert told.facts["names"][0] == "0"
    saturated, _ = train(net(), scale=1e4, activations=["4"])
    assert saturated.tensors[-1].outputs["4"]["saturated"] > 0.5


def test_a_module_that_is_not_there() -> None:
    with pytest.raises(InputError, match="no module 'head'"):
        train(net(), activations=["head"])


def test_a_compiled_model_is_left_alone() -> None:
    model = torch.compile(net(), backend="eager")
    guard, _ = train(model, steps=3, activations=True)
    assert guard.passive is None
    assert [(i.kind, i.severity) for i in guard.incidents] == [("activations", "note")]
    assert guard.tensors[-1].outputs == {}


def test_checkpointing_counts_the_pass_with_gradients() -> None:
    from torch.utils.checkpoint import checkpoint

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    with Guard(model, optimizer, every=1, activations=True) as guard:
        loss = checkpoint(model, torch.randn(3, 4), use_reentrant=False).square().mean()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    assert len(guard.tensors[-1].outputs) == 6
