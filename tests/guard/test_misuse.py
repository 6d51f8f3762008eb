"""What a new user does wrong, and what he is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop import Loop  # noqa: E402

from wheeltapper.errors import InputError  # noqa: E402
from wheeltapper.guard import Guard, Stop, guarded, verdict  # noqa: E402


def kinds(guard: Guard) -> list[str]:
    return [i.kind for i in guard.incidents]


def test_guard_step_before_backward_is_told_and_the_gradients_are_seen() -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer, policy="skip")
    for k in range(4):
        loss = model(torch.randn(5, 3) * (float("nan") if k == 2 else 1.0)).square().mean()
        optimizer.zero_grad()
        guard.step(loss)
        loss.backward()
        optimizer.step()
    guard.close()
    assert kinds(guard) == ["misplaced", "nonfinite-loss", "nonfinite", "skipped"]
    assert guard.history[0].grad_norm > 0
    assert not guard.history[0].before_clip
    assert all(torch.isfinite(p).all() for p in model.parameters())


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("unscaled", [False, True])
def test_a_scaler_that_the_guard_was_not_given_is_found(fused: bool, unscaled: bool) -> None:
    """From the first step that it makes: norms are of the true gradients, its skips are known."""
    found = []
    for given in (True, False):
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
        loop = Loop(fused=fused)
        guard = Guard(loop.model, loop.optimizer, scaler=scaler if given else None)
        for k in range(12):
            x, y = loop.batch()
            loss = torch.nn.functional.mse_loss(loop.model(x * (float("inf") if k == 7 else 1.0)), y)
            loop.optimizer.zero_grad()
            scaler.scale(loss).backward()
            guard.step(loss)
            if unscaled:
                scaler.unscale_(loop.optimizer)
            scaler.step(loop.optimizer)
            scaler.update()
        guard.close()
        assert guard.passive is None
        found.append(guard)
    known, unknown = found
    assert kinds(unknown)[0] == "scaler"
    assert unknown.scaler is scaler
    assert [r.grad_norm for r in unknown.history] == pytest.approx(
        [r.grad_norm for r in known.history], rel=1e-4, nan_ok=True
    )
    assert [r.skipped for r in unknown.history] == [r.skipped for r in known.history] == [k == 7 for k in range(12)]
    assert kinds(unknown)[1:] == kinds(known)


def test_an_optimizer_that_never_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict, "UNSTEPPED", 20)
    loop = Loop()
    guard = loop.guard()
    monkeypatch.setattr(loop.optimizer, "step", lambda: None)
    loop.run(50, guard)
    guard.close()
    assert kinds(guard) == ["no-step"]
    assert "AdamW" in guard.incidents[0].text


def test_an_optimizer_of_another_model_is_told_at_once() -> None:
    guard = Guard(torch.nn.Linear(3, 1), torch.optim.SGD(torch.nn.Linear(3, 1).parameters(), lr=0.1))
    assert kinds(guard) == ["not-optimized"]
    assert "another one" in guard.incidents[0].text


def test_a_model_with_two_optimizers_and_two_guards_is_in_order() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 1), torch.nn.Linear(1, 1))
    parts = [torch.optim.SGD(model[i].parameters(), lr=0.1) for i in (0, 1)]
    guards = [Guard(model, optimizer) for optimizer in parts]
    loss = model(torch.randn(5, 3)).square().mean()
    loss.backward()
    for guard, optimizer in zip(guards, parts, strict=True):
        guard.step(loss)
        optimizer.step()
        guard.close()
        assert [i.facts["names"] for i in guard.incidents] == [["2.weight", "2.bias"]]  # those neither has


@pytest.mark.parametrize(("name", "part"), [("scheduler", 3), ("ema", object())])
def test_a_part_without_a_state_is_refused(name: str, part: Any) -> None:
    loop = Loop()
    with pytest.raises(InputError, match=f"{name} is a"):
        Guard(loop.model, loop.optimizer, **{name: part})


def test_a_web_hook_that_is_refused_leaves_no_guard_behind() -> None:
    loop = Loop()
    with pytest.raises(InputError, match="http"):
        guarded(loop.model, loop.optimizer, webhook="ftp://somewhere")
    assert not loop.optimizer._optimizer_step_pre_hooks


def test_a_callback_that_raises_is_told_with_its_words(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_: Any) -> None:
        raise ValueError("no such channel")

    loop = Loop()
    with guarded(loop.model, loop.optimizer, callback=broken) as session:
        loop.run(3, session.guard, poison=(1,))
    assert "no such channel" in caplog.text


def test_rollback_without_a_sound_state_is_said_once() -> None:
    loop = Loop()
    guard = loop.guard("rollback")
    loop.run(8, guard, poison=(0,))
    guard.close()
    assert kinds(guard).count("limit") == 1


def stopped(folder: Path | None, spoil: Callable[[Any], None]) -> tuple[Guard, str]:
    """A run that is spoiled after 320 steps, and what Stop says."""
    loop = Loop()
    guard = loop.guard("stop", folder, snapshot_every=20)
    loop.run(320, guard)
    with torch.no_grad():
        spoil(loop.model)
    with pytest.raises(Stop) as told:
        loop.run(200, guard)
    guard.close()
    return guard, str(told.value)


def test_stop_says_where_the_good_state_is_and_resume_takes_that_one(tmp_path: Path) -> None:
    guard, said = stopped(tmp_path, lambda model: model[4].weight.mul_(300))
    assert "loss-left-band" in kinds(guard)
    assert list(tmp_path.glob("stopped-*.pt"))  # finite, and yet the trouble itself
    step = Loop(seed=5).guard("watch", tmp_path).resume()
    assert step is not None
    assert step <= 320
    assert f"of step {step}, is in {tmp_path}" in said


def test_stop_without_a_folder_says_that_nothing_is_written() -> None:
    _, said = stopped(None, lambda model: model[0].weight.fill_(float("nan")))
    assert "No state was written (no run_dir)." in said


def test_replay_of_a_run_names_the_other_incidents_and_the_batch_that_is_nan(tmp_path: Path) -> None:
    from io import StringIO

    from rich.console import Console

    from wheeltapper.guard.replay import read_incident, script_of
    from wheeltapper.guard.replay_view import print_incident

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with guarded(model, optimizer, run_dir=tmp_path) as session:
        for k in range(105):
            batch = session.keep(torch.full((5, 3), float("nan") if k == 3 else 1.0))
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            session.step(loss)
            optimizer.step()
    page = StringIO()
    print_incident(read_incident(tmp_path), Console(file=page, width=40), steps=2)
    text = page.getvalue()
    assert "beside it, oldest first: incident-3" in text
    head = text.split("\n\n")[0].splitlines()
    assert all(line.startswith("  ") for line in head[1:])  # also where they wrap
    script = script_of(read_incident(tmp_path / "incident-3"))
    script = script.replace('raise SystemExit("fill in build', "return torch.nn.Linear(3, 1)  # ")
    script = script.replace('raise SystemExit("fill in compute', "return model(batch).mean()  # ")
    (tmp_path / "again.py").write_text(script, encoding="utf-8")
    told = subprocess.run([sys.executable, tmp_path / "again.py"], capture_output=True, text=True, check=True).stdout
    assert "the batch itself holds numbers that are not finite" in told


def test_what_goes_on_is_told_at_growing_distances_and_anew_after_a_pause() -> None:
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    guard = Guard(model, optimizer)
    for k in range(1300):
        optimizer.zero_grad()
        model(torch.randn(5, 3)).square().mean().backward()
        guard.step(float("nan") if k < 900 or k == 1200 else 1.0)
        optimizer.step()
    guard.close()
    assert [i.step for i in guard.incidents if i.kind == "nonfinite-loss"] == [0, 100, 300, 700, 1200]


def test_no_recoveries_are_said_so() -> None:
    assert "recoveries=0 lets" in Loop().guard("skip", recoveries=0).incidents[0].text
