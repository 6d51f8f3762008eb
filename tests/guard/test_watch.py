"""Watching changes nothing: the same bits in weights, losses and random states, whatever the loop looks like."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from wheeltapper.guard import Guard  # noqa: E402

Make = Callable[[Any], Any]
OPTIMIZERS: dict[str, Make] = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=1e-3),
    "sgd-loop": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, foreach=False),
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "adamw-fused": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=1e-3),
    "adafactor": lambda p: torch.optim.Adafactor(p, lr=1e-2),
}


def net() -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(2, 6, 3),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(0.2),
        nn.Linear(6 * 36, 8),
        nn.Linear(8, 3),
    )


def train(
    guarded: bool,
    make: Make,
    *,
    scaled: bool = False,
    accumulate: int = 1,
    clip: float | None = 1.0,
    late: bool = False,
    steps: int = 12,
    **options: Any,
) -> tuple[list[Any], Guard | None]:
    torch.manual_seed(3)
    np.random.seed(3)
    random.seed(3)
    model = net()
    optimizer = make(model.parameters())
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5, 0.5)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=4) if scaled else None
    ema = torch.optim.swa_utils.AveragedModel(model)
    guard = Guard(model, optimizer, scheduler, scaler, ema, every=3, clip_norm=clip, **options) if guarded else None
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        for k in range(accumulate):
            x = torch.randn(8, 2, 8, 8)
            with torch.autocast("cpu", torch.bfloat16, enabled=scaled):
                out = model(x)
            loss = torch.nn.functional.cross_entropy(out.float(), torch.randint(0, 3, (8,))) / accumulate
            (scaler.scale(loss) if scaler else loss).backward()
            losses.append(loss.detach().clone())
            if scaler and step == 5 and k == accumulate - 1:
                next(model.parameters()).grad.fill_(float("inf"))
            if guard and not late:
                guard.step(loss, batch_id=(step, k), inputs=x)
        if scaler:
            scaler.unscale_(optimizer)
        if clip:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        scaler.step(optimizer) if scaler else optimizer.step()
        if scaler:
            scaler.update()
        if guard and late:
            guard.step(losses[-1], batch_id=(step, 0))
        scheduler.step()
        ema.update_parameters(model)
    if guard:
        guard.close()
    rngs = [
        torch.get_rng_state(),
        torch.from_numpy(np.random.get_state()[1].astype(np.int64)),
        torch.tensor(random.random()),
    ]
    weights = [*model.state_dict().values(), *ema.state_dict().values()]
    return [*losses, *weights, *optimizer_tensors(optimizer), *rngs], guard


def optimizer_tensors(optimizer: Any) -> list[Any]:
    saved = optimizer.state_dict()["state"]
    return [torch.as_tensor(v) for k in sorted(saved) for _, v in sorted(saved[k].items()) if v is not None]


def same(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(torch.equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bit_identical_with_each_optimizer(name: str) -> None:
    plain, _ = train(False, OPTIMIZERS[name])
    watched, guard = train(True, OPTIMIZERS[name])
    assert same(plain, watched)
    assert guard is not None
    assert guard.passive is None
    assert len(guard.history) == 12
    assert len(guard.tensors) == 4


@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("name", ["adamw", "adamw-fused"])
def test_bit_identical_in_each_loop(scaled: bool, accumulate: int, late: bool, name: str) -> None:
    loop: dict[str, Any] = {"scaled": scaled, "accumulate": accumulate, "late": late}
    plain, _ = train(False, OPTIMIZERS[name], **loop)
    watched, guard = train(True, OPTIMIZERS[name], **loop)
    assert same(plain, watched)
    assert guard is not None
    assert guard.passive is None
    rows = list(guard.history)
    assert [r.tick for r in rows] == list(range(len(rows)))
    if not late:
        assert [r.micro for r in rows[:5]] == [accumulate] * 5
        assert [r.skipped for r in rows] == [scaled and k == 5 for k in range(12)]
        assert [r.nonfinite for r in rows] == [int(scaled and k == 5) for k in range(12)]
        assert guard.incidents == []  # an overflow that the scaler skips is no incident


def test_the_comparison_can_fail() -> None:
    plain, _ = train(False, OPTIMIZERS["sgd"])
    other, _ = train(False, OPTIMIZERS["sgd"], clip=0.9)
    assert not same(plain, other)


def test_the_numbers_are_true() -> None:
    torch.manual_seed(0)
    model = net()
    params = list(model.parameters())
    optimizer = torch.optim.AdamW([{"params": params[:4]}, {"params": params[4:], "lr": 1e-3}], lr=1e-2)
    guard = Guard(model, optimizer, every=1, clip_norm=0.5)
    for _ in range(3):
        x, y = torch.randn(8, 2, 8, 8), torch.randint(0, 3, (8,))
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        norms = [float(p.grad.norm()) for p in params]
        guard.step(loss, inputs=x, targets=y)
        torch.nn.utils.clip_grad_norm_(params, 0.5)
        before = [p.detach().clone() for p in params]
        optimizer.step()
    guard.close()
    row, look = guard.history[-1], guard.tensors[-1]
    assert row.loss == pytest.approx(loss.item())
    assert row.grad_norm == pytest.approx(np.linalg.norm(norms), rel=1e-5)
    assert row.group_norms == pytest.approx([np.linalg.norm(norms[:4]), np.linalg.norm(norms[4:])], rel=1e-5)
    assert row.lr == (1e-2, 1e-3)
    assert row.clipped is bool(np.linalg.norm(norms) > 0.5)
    change = [float((p.detach() - b).norm()) for p, b in zip(params, before, strict=True)]
    size = [float(p.detach().norm()) for p in params]
    # 1024 of the largest tensor's 1728 coordinates are sampled: 1/sqrt(2n) is 2 %.
    assert row.update_ratio == pytest.approx(np.linalg.norm(change) / np.linalg.norm(size), rel=2e-2)
    assert look.weight_rms == pytest.approx([float(b.norm()) / b.numel() ** 0.5 for b in before], rel=1e-5)
    assert look.update_rms == pytest.approx(
        [c / b.numel() ** 0.5 for c, b in zip(change, before, strict=True)], rel=1e-3
    )
    lag = []
    for p in params:
        v = optimizer.state[p]["exp_avg_sq"] / (1 - 0.999**3)
        lag.append(float((p.grad.square() / v.clamp(min=1e-16)).mean().sqrt()))
    assert look.lag == pytest.approx(lag, rel=1e-4)
    assert look.inputs["shape"] == (8, 2, 8, 8)
    assert look.targets["max"] <= 2


def test_an_error_inside_is_told_once_and_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    plain, _ = train(False, OPTIMIZERS["adamw"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wheeltapper.guard.judge.Judge.step", lambda *_: 1 / 0)
        watched, guard = train(True, OPTIMIZERS["adamw"])
    assert same(plain, watched)
    assert guard is not None
    assert guard.passive is not None
    assert "ZeroDivisionError" in guard.passive
    assert [i.kind for i in guard.incidents] == ["guard"]
    assert sum("stopped looking" in r.message for r in caplog.records) == 1


def test_a_listener_that_raises_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer)
    heard: list[int] = []

    def bad(_: Any) -> None:
        raise RuntimeError("mine")

    guard.listen(step=bad)
    guard.listen(step=lambda r: heard.append(r.tick))
    for _ in range(3):
        loss = model(torch.ones(1, 2)).sum()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    assert heard == [0, 1, 2]
    assert guard.passive is None
    assert [i.kind for i in guard.incidents] == ["guard"]


def test_checkpointing_and_channels_last() -> None:
    from torch.utils.checkpoint import checkpoint

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 5), torch.nn.Conv2d(64, 64, 5)).to(
        memory_format=torch.channels_last
    )
    optimizer = torch.optim.AdamW(model.parameters())
    with Guard(model, optimizer, every=1) as guard:
        for _ in range(2):
            x = torch.randn(2, 3, 12, 12).to(memory_format=torch.channels_last)
            loss = checkpoint(model, x, use_reentrant=False).square().mean()
            optimizer.zero_grad()
            loss.backward()
            guard.step(loss)
            optimizer.step()
    assert guard.passive is None
    assert np.isfinite(guard.tensors[-1].lag).all()
    assert len(guard.names) == 4


def test_what_no_gradient_reaches_and_what_is_not_optimized() -> None:
    model = torch.nn.ModuleDict({n: torch.nn.Linear(4, 4, bias=False) for n in ("used", "idle", "left")})
    optimizer = torch.optim.SGD([*model["used"].parameters(), *model["idle"].parameters()], lr=0.1)
    guard = Guard(model, optimizer, every=2)
    for _ in range(5):
        loss = model["used"](torch.randn(3, 4)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    found = {i.kind: i.facts.get("names") for i in guard.incidents}
    assert found == {"not-optimized": ["left.weight"], "no-gradient": ["idle.weight"]}


def test_weights_that_do_not_move() -> None:
    """bf16 weights with a small rate: every update is lost in rounding, or most of them; fp32 weights move."""
    for dtype, lr, kinds in (
        (torch.bfloat16, 1e-7, ["frozen"]),
        (torch.bfloat16, 2e-5, ["stagnant"]),
        (torch.float32, 1e-7, []),
    ):
        torch.manual_seed(0)
        model = torch.nn.Linear(64, 64, bias=False).to(dtype)
        torch.nn.init.normal_(model.weight)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        guard = Guard(model, optimizer, every=1)
        for _ in range(4):
            loss = model(torch.randn(8, 64).to(dtype)).float().square().mean()
            optimizer.zero_grad()
            loss.backward()
            guard.step(loss)
            optimizer.step()
        guard.close()
        assert guard.passive is None
        assert [i.kind for i in guard.incidents] == kinds, (dtype, lr, guard.tensors[-1].moved)


def test_a_group_added_later() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
    optimizer = torch.optim.AdamW(model[1].parameters(), lr=0.1)
    guard = Guard(model, optimizer, policy="rollback", every=2, snapshot_every=3)
    for k in range(30):
        if k == 6:
            optimizer.add_param_group({"params": list(model[0].parameters()), "lr": 0.01})
        loss = model(torch.ones(2, 3) * (float("nan") if k == 20 else 1)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    assert guard.passive is None
    assert guard.names == ("1.weight", "1.bias", "0.weight", "0.bias")
    assert guard.history[-1].lr == (0.1, 0.01)
    assert len(guard.history[-1].group_norms) == 2
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())


def test_a_bias_before_a_batch_norm_is_not_called_frozen() -> None:
    """Its gradient is rounding noise; plain SGD adds nothing with it, and nothing is wrong."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    guard = Guard(model, optimizer, every=1)
    for _ in range(20):
        x = torch.randn(16, 6)
        loss = (model(x) - x[:, :1]).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    assert guard.tensors[-1].moved[1] < 0.5
    assert guard.incidents == []


def measured(model: Any, optimizer: Any, steps: int = 3, between: Any = None) -> Guard:
    """A guarded training on ones; `between` is called after every step."""
    guard = Guard(model, optimizer, every=2)
    for k in range(steps):
        loss = model(torch.ones(2, 4)).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
        if between is not None:
            between(k)
    guard.close()
    assert guard.passive is None
    return guard


def test_what_is_written_between_steps_is_no_part_of_the_update() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4, bias=False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def load(_: int) -> None:
        model.load_state_dict({"weight": torch.randn(4, 4)})

    guard = measured(model, optimizer, 5, load)
    assert [r.update_ratio for r in guard.history] == [0.0] * 5


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_and_mixtures(dtype: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 2000), torch.nn.Linear(2000, 3).to(dtype))
    model[0].register_forward_hook(lambda *a: a[2].to(dtype))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    guard = measured(model, optimizer)
    last, look = guard.history[-1], guard.tensors[-1]
    true = sum(float(p.grad.double().square().sum()) for p in model.parameters()) ** 0.5
    assert last.grad_norm == pytest.approx(true, rel=1e-2)
    assert last.update_ratio > 0
    assert np.isfinite(look.lag).all()
    assert np.isfinite(look.weight_rms).all()


def test_gradients_that_come_and_go_and_sparse_ones() -> None:
    torch.manual_seed(0)
    model = torch.nn.ModuleDict(
        {"words": torch.nn.Embedding(50, 4, sparse=True), "a": torch.nn.Linear(4, 4), "b": torch.nn.Linear(4, 4)}
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer, every=2)
    true = []
    for k in range(8):
        h = model["words"](torch.tensor([k, k + 1]))
        h = model["a"](h) if k % 3 else model["b"](h.detach())
        loss = h.square().mean()
        optimizer.zero_grad()
        loss.backward()
        grads = [p.grad.to_dense() if p.grad.is_sparse else p.grad for p in model.parameters() if p.grad is not None]
        true.append(float(torch.cat([g.flatten() for g in grads]).norm()))
        guard.step(loss)
        optimizer.step()
    guard.close()
    assert guard.passive is None
    assert [r.grad_norm for r in guard.history] == pytest.approx(true, rel=1e-5)
