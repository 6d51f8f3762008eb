"""A nan at step k: each policy does what it says, no more often than it may, and the run ends where its twin does."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from loop import Loop  # noqa: E402

from wheeltapper.errors import InputError  # noqa: E402
from wheeltapper.guard import Guard, Stop, rng  # noqa: E402
from wheeltapper.guard.judge import Alarm  # noqa: E402
from wheeltapper.guard.ranks import Ranks  # noqa: E402

STEPS = 300


@pytest.fixture(scope="module")
def healthy() -> list[float]:
    """Held-out losses of healthy runs: other seeds are the noise that a recovered run may differ by."""
    scores = []
    for seed in range(4):
        loop = Loop(seed)
        loop.run(STEPS)
        scores.append(loop.score())
    return scores


def within_noise(score: float, healthy: list[float]) -> bool:
    spread = max(healthy) - min(healthy)
    return score < max(healthy) + spread


def test_without_a_policy_the_nan_stays(healthy: list[float]) -> None:
    loop = Loop()
    guard = loop.guard("watch")
    loop.run(200, guard, poison=(150,))
    guard.close()
    assert not loop.finite()
    kinds = [i.kind for i in guard.incidents]
    assert kinds[:2] == ["nonfinite-loss", "nonfinite"]
    assert guard.incidents[1].step == 150
    assert guard.incidents[1].facts["batch"] == 150


@pytest.mark.parametrize("poison", [(150,), (20, 90, 91, 250)])
def test_skip(poison: tuple[int, ...], healthy: list[float], tmp_path: Path) -> None:
    loop = Loop()
    guard = loop.guard("skip", tmp_path)
    loop.run(STEPS, guard, poison)
    guard.close()
    assert loop.finite()
    assert within_noise(loop.score(), healthy)
    assert [r.batch_id for r in guard.history if r.action == "skip"] == list(poison)
    assert [i.facts["batch"] for i in guard.incidents if i.kind == "skipped"] == list(poison)
    lines = [json.loads(line) for line in (tmp_path / "guard.jsonl").read_text().splitlines()]
    assert sum(line["event"] == "recovery" for line in lines) == len(poison)
    assert guard.passive is None


@pytest.mark.parametrize("fused", [False, True])
def test_a_skipped_step_leaves_no_trace(fused: bool) -> None:
    """With and without a fused optimizer, which is told by a flag on the device."""
    loop = Loop(fused=fused)
    guard = loop.guard("skip")
    loop.run(5, guard)
    weights = [t.clone() for t in loop.model.state_dict().values()]
    moments = [v["exp_avg"].clone() for v in loop.optimizer.state.values()]
    loop.once(guard, poison=True)
    counters = {"num_batches_tracked"}
    names = list(loop.model.state_dict())
    for name, a, b in zip(names, weights, loop.model.state_dict().values(), strict=True):
        assert torch.equal(a, b) or name.rpartition(".")[2] in counters, name
    assert all(torch.equal(a, v["exp_avg"]) for a, v in zip(moments, loop.optimizer.state.values(), strict=True))
    assert all(float(v["step"]) == 5 for v in loop.optimizer.state.values())
    assert all(p.grad is not None for p in loop.model.parameters())
    assert not hasattr(loop.optimizer, "found_inf")
    assert guard.history[-1].action == "skip"
    loop.run(5, guard)
    assert guard.passive is None
    assert all(float(v["step"]) == 10 for v in loop.optimizer.state.values())


def test_skip_is_bounded() -> None:
    loop = Loop()
    guard = loop.guard("skip", recoveries=2)
    loop.run(40, guard, poison=(5, 10, 15))
    guard.close()
    assert not loop.finite()
    assert sum(r.action == "skip" for r in guard.history) == 2


def test_skip_of_an_outlier_only_after_a_quiet_window() -> None:
    loop = Loop()
    guard = loop.guard("skip")
    loop.run(320, guard)
    before = [p.detach().clone() for p in loop.model.parameters()]
    x, y = loop.batch()
    loss = torch.nn.functional.mse_loss(loop.model(x), y) * 1e4
    loop.optimizer.zero_grad()
    loss.backward()
    guard.step(loss, batch_id="huge")
    loop.optimizer.step()
    guard.flush()
    assert guard.history[-1].action == "skip"
    assert all(torch.equal(a, b) for a, b in zip(before, loop.model.parameters(), strict=True))
    assert sum(r.action == "skip" for r in guard.history) == 1


def test_cut_keeps_the_schedule() -> None:
    loop, twin = Loop(), Loop()
    guard = loop.guard("cut", cut=0.25, recoveries=1)
    loop.run(30, guard)
    for _ in range(2):  # the second finds the budget used
        guard._actor.consider(Alarm("precursor", "The norm runs away.", "warning", guard.at), guard.tick + 20)
        loop.run(10, guard)
    guard.close()
    twin.run(50)
    assert loop.scheduler.get_last_lr()[0] == pytest.approx(0.25 * twin.scheduler.get_last_lr()[0], rel=1e-6)
    assert [i.action for i in guard.incidents if i.action] == ["cut"]


@pytest.mark.parametrize("poison", [(150,), (3,), (100, 200)])
def test_rollback(poison: tuple[int, ...], healthy: list[float], tmp_path: Path) -> None:
    loop = Loop()
    guard = loop.guard("rollback", tmp_path, snapshot_every=25)
    loop.run(STEPS, guard, poison)
    guard.close()
    assert loop.finite()
    assert all(bool(torch.isfinite(v["exp_avg"]).all()) for v in loop.optimizer.state.values())
    assert all(bool(torch.isfinite(t).all()) for t in loop.ema.state_dict().values())
    assert within_noise(loop.score(), healthy)
    back = [i for i in guard.incidents if i.action == "rollback"]
    assert len(back) == len(poison)
    for incident, k in zip(back, poison, strict=True):
        assert incident.facts["to_step"] <= max(k - 16, 1)
    lost = sum(i.facts["steps_lost"] for i in back)
    assert guard.at == STEPS - lost
    assert loop.scheduler.last_epoch == guard.at
    assert guard.passive is None


def test_rollback_goes_on_as_from_the_snapshot() -> None:
    """Weights, moments, schedule, EMA and random states are those of a run that was never disturbed: the twin, fed
    the same batches, ends with the same bits."""
    loop, twin = Loop(), Loop()
    begin = rng.capture()
    guard = loop.guard("rollback", snapshot_every=10**6)  # one snapshot, after the first step
    loop.run(40, guard, poison=(39,))
    guard.flush()
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]
    assert guard.at == 1
    after = loop.data.get_state()
    loop.run(10, guard)
    rng.restore(begin)
    twin.run(1)
    twin.data.set_state(after)
    twin.run(10)
    for a, b in zip(loop.model.state_dict().values(), twin.model.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    for a, b in zip(loop.ema.state_dict().values(), twin.ema.state_dict().values(), strict=True):
        assert torch.equal(a, b)
    assert loop.scheduler.get_last_lr() == twin.scheduler.get_last_lr()
    assert loop.losses[-10:] == twin.losses[-10:]


def test_rollback_is_bounded_and_older_states_are_tried() -> None:
    loop = Loop()
    guard = loop.guard("rollback", snapshot_every=20, recoveries=2)
    loop.run(70, guard)
    loop.run(60, guard, poison=tuple(range(75, 200)))
    guard.close()
    back = [i.facts["to_step"] for i in guard.incidents if i.action == "rollback"]
    assert len(back) == 2
    assert back[1] < back[0]
    assert [i.kind for i in guard.incidents].count("limit") == 1
    assert guard.passive is None


def test_rollback_under_a_scaler_that_never_steps_again() -> None:
    """Weights of nan make every step an overflow: the hooks are silent, the guard acts all the same."""
    loop = Loop(scaler=torch.amp.GradScaler("cpu", init_scale=4.0))
    guard = loop.guard("rollback", snapshot_every=20)
    loop.run(60, guard)
    with torch.no_grad():
        loop.model[0].weight.fill_(float("nan"))
    loop.run(40, guard)
    guard.close()
    assert loop.finite()
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]
    assert guard.passive is None


def test_stop(tmp_path: Path) -> None:
    loop = Loop()
    guard = loop.guard("stop", tmp_path, snapshot_every=20)
    with pytest.raises(Stop):
        loop.run(200, guard, poison=(100,))
    guard.close()
    assert loop.iteration <= 102
    assert guard.stopping is not None
    assert list(tmp_path.glob("good-*.pt"))
    assert not list(tmp_path.glob("stopped-*.pt"))  # the state it stopped in is not finite
    fresh = Loop(seed=5)
    again = fresh.guard("watch", tmp_path)
    step = again.resume()
    assert step is not None
    assert 20 <= step < 100
    assert fresh.scheduler.last_epoch == step
    assert fresh.finite()


def test_only_stop_raises() -> None:
    for policy in ("watch", "skip", "cut", "rollback"):
        loop = Loop()
        guard = loop.guard(policy, recoveries=1)
        loop.run(30, guard, poison=tuple(range(10, 30)))
        guard.close()


def test_a_cut_is_not_spent_on_weights_that_are_nan() -> None:
    loop = Loop()
    guard = loop.guard("cut")
    loop.run(80, guard, poison=(30,))
    guard.close()
    assert [i for i in guard.incidents if i.action] == []
    assert [i.kind for i in guard.incidents][:3] == ["nonfinite-loss", "nonfinite", "limit"]
    assert "no lower rate mends them" in guard.incidents[2].text
    assert guard.incidents[2].facts["used"] == 0


def test_what_is_no_model_and_no_optimizer_is_refused_at_once() -> None:
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for wrong, said in (
        ((optimizer, model), "model is a SGD"),
        ((model, None), "optimizer is a NoneType"),
        ((model, model.parameters()), "optimizer is a generator"),
        ((model, optimizer, None, True), "scaler is a bool"),
    ):
        with pytest.raises(InputError, match=said):
            Guard(*wrong)


@pytest.mark.parametrize("options", [{"policy": "fix"}, {"cut": 2.0}])
def test_a_wrong_option_is_told_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Loop().guard(**options)


def test_a_loss_told_after_going_back_is_no_second_incident() -> None:
    """guard.step after optimizer.step: the loss of the step that was left comes when the state is sound again."""
    loop = Loop()
    guard = loop.guard("rollback", snapshot_every=20)
    for k in range(60):
        loop.once(guard, poison=k == 45, late=True)
    guard.close()
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]
    assert [r.batch_id for r in guard.history] == list(range(60))
    assert loop.finite()
    assert guard.passive is None


@pytest.mark.parametrize("policy", ["watch", "skip", "rollback"])
@pytest.mark.parametrize("by_name", [False, True])
def test_gradients_made_in_a_closure(policy: str, by_name: bool) -> None:
    """As Lightning does it: the hooks of the optimizer come before the gradients."""

    def run(guarded: bool) -> tuple[list[Any], Guard | None]:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        guard = Guard(model, optimizer, policy=policy, every=1, snapshot_every=10) if guarded else None
        for k in range(40):
            x = torch.randn(8, 4) * (float("nan") if k == 30 and policy != "watch" else 1.0)

            def closure(x: Any = x) -> Any:
                optimizer.zero_grad()
                loss = model(x).square().mean()
                loss.backward()
                if guard is not None:
                    guard.step(loss)
                return loss

            optimizer.step(closure=closure) if by_name else optimizer.step(closure)
        if guard is not None:
            guard.close()
        return [p.detach().clone() for p in model.parameters()], guard

    weights, guard = run(True)
    assert guard is not None
    assert guard.passive is None
    assert [i.action for i in guard.incidents if i.action] == ([] if policy == "watch" else [policy])
    assert all(bool(torch.isfinite(w).all()) for w in weights)
    assert guard.tensors[0].absent == ()  # looked at after the closure
    if policy == "watch":
        assert all(torch.equal(a, b) for a, b in zip(weights, run(False)[0], strict=True))


def test_a_closure_that_is_called_often() -> None:
    def run(guarded: bool) -> Any:
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 1)
        optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=5)
        guard = Guard(model, optimizer, every=1) if guarded else None
        x = torch.randn(8, 4)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            return loss

        for _ in range(4):
            optimizer.step(closure)
        if guard is not None:
            guard.close()
            assert guard.passive is None
            assert [r.tick for r in guard.history] == [0, 1, 2, 3]
        return model.weight.detach().clone()

    assert torch.equal(run(False), run(True))


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_cut_reaches_the_schedule_inside_a_wrapper(wrapped: bool) -> None:
    """accelerate hands out a wrapper that does not show what the schedule computes from."""
    loop, twin = Loop(), Loop()
    schedule = SimpleNamespace(
        scheduler=loop.scheduler, state_dict=loop.scheduler.state_dict, load_state_dict=loop.scheduler.load_state_dict
    )
    guard = Guard(loop.model, loop.optimizer, schedule if wrapped else loop.scheduler, policy="cut", cut=0.25)
    loop.run(20, guard)
    guard._actor.consider(Alarm("precursor", "The norm runs away.", "warning", guard.at), guard.tick + 20)
    loop.run(20, guard)
    guard.close()
    twin.run(40)
    assert loop.scheduler.get_last_lr()[0] == pytest.approx(0.25 * twin.scheduler.get_last_lr()[0], rel=1e-6)


def test_ranks_that_would_act_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of two ranks, and a model that says nothing of the other; watching alone is fine, and so is saying so."""
    dist = torch.distributed
    for name, value in (("is_initialized", True), ("get_rank", 0), ("get_world_size", 2)):
        monkeypatch.setattr(dist, name, lambda *_, value=value: value)
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for policy in ("skip", "cut", "rollback", "stop"):
        with pytest.raises(InputError, match="which of them train together"):
            Guard(model, optimizer, policy=policy)
        assert Guard(model, optimizer, policy=policy, process_group=False).passive is None
    assert Guard(model, optimizer).passive is None


def test_shards_are_judged_by_the_band_of_the_whole() -> None:
    """Each rank knows the band of its own shards; of 64 ranks the whole norm is eight times as large, and no outlier."""

    class Sixty4(Ranks):
        def reduce(self, values: Any, how: str) -> Any:
            assert how == "sum"
            return values * self.world

        def meeting_device(self, device: Any) -> Any:
            return device

    loop = Loop()
    guard = loop.guard("skip")
    actor = guard._actor
    actor.ranks = Sixty4(0, 64, group=object(), sharded=True)
    gradients = SimpleNamespace(total=lambda: torch.tensor(1.0), bad=lambda: torch.tensor(0.0))
    assert float(actor.skip_flag(gradients, limit=5.0, scaler=False)) == 0
    assert float(actor.skip_flag(gradients, limit=0.9, scaler=False)) == 1
    assert float(actor.skips) == 1
