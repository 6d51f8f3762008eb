"""What the lab writes by hand is what the readers read."""

from __future__ import annotations

import math
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from wheeltapper.lab import clock  # noqa: E402
from wheeltapper.lab.files import EventFile, WandbFile, save_safetensors  # noqa: E402
from wheeltapper.lab.precision import grads_through_half, half_hooks, scaler_for, through_half  # noqa: E402
from wheeltapper.reading import readings_of  # noqa: E402


def series(path: Path) -> dict[str, tuple[list[float], list[float]]]:
    return {p.name: (p.at.tolist(), p.values.tolist()) for r in readings_of(path) for p in r.points}


def test_event_files_are_read_back(tmp_path: Path) -> None:
    events = EventFile(tmp_path, 1_700_000_000.0)
    for step in range(5, 200, 5):
        events.scalars(step, 1_700_000_000.0 + step, {"losses/l_g_l1": 1 / step, "scales/scale_g": 65536.0})
    events.scalars(200, 1_700_000_300.0, {"losses/l_g_l1": math.nan})
    found = series(events.path)
    assert found["losses/l_g_l1"][0] == [*range(5, 205, 5)]
    assert found["losses/l_g_l1"][1][0] == pytest.approx(0.2)
    assert math.isnan(found["losses/l_g_l1"][1][-1])


def test_wandb_files_are_read_back_across_blocks(tmp_path: Path) -> None:
    log = WandbFile(tmp_path, "abc123", "protein", {"optim": {"lr": 0.01}})
    for step in range(1, 400):
        log.log(step, {"train/loss": 3 / step, "note": "x" * 150})
    log.finish(0)
    assert log.path.stat().st_size > 2 * WandbFile.BLOCK
    (reading,) = readings_of(log.path)
    assert not [note for note in reading.notes if note.level == "lost"]
    (loss,) = [p for p in reading.points if p.name == "train/loss"]
    assert len(loss.values) == 399
    assert loss.at[-1] == 399
    assert any(event.kind == "end" for event in reading.events)


def test_safetensors_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "models" / "net_g_ema_100.safetensors"
    save_safetensors(path, {"a.weight": torch.ones(2, 3), "b": torch.zeros(4)})
    (checkpoint,) = [c for r in readings_of(path) for c in r.checkpoints]
    assert {(t.name, t.shape) for t in checkpoint.tensors} == {("a.weight", (2, 3)), ("b", (4,))}


def test_half_precision_overflows_both_ways() -> None:
    x = torch.tensor([1.0, 7e4], requires_grad=True)
    y = through_half(x)
    assert y.isinf().tolist() == [False, True]
    through_half(x[:1]).backward(torch.tensor([1e6]))
    assert x.grad is not None
    assert x.grad[0].isinf()


def test_a_too_large_scale_is_found_and_halved() -> None:
    net = torch.nn.Linear(4, 1)
    half_hooks(net, (torch.nn.Linear,))
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    scaler = scaler_for("cpu", enabled=True, init_scale=2.0**20)
    before = net.weight.detach().clone()
    scaler.scale(net(torch.ones(2, 4)).sum()).backward()
    grads_through_half(net)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**19
    assert torch.equal(before, net.weight)


def test_the_lab_clock_runs_on_cpu_time_and_can_cut_a_run_off() -> None:
    clock.start(3, speed=1000.0, preempt_at=5)
    try:
        first, at = clock.now(), clock.seconds()
        assert first.date().isoformat() == "2025-10-28"
        sum(range(200_000))
        assert clock.seconds() > at
        clock.alive(4)
        with pytest.raises(clock.Preempted):
            clock.alive(5)
    finally:
        clock.stop()
    assert abs(clock.now().timestamp() - time.time()) < 60
