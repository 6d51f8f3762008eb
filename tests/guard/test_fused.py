"""The kernels against torch's own calls: the same numbers, by the same guard. On a CPU the kernels are acted out; on a
GPU they are the real ones."""

from __future__ import annotations

import logging
import math
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from emulated import as_on_a_device, on_the_cpu  # noqa: E402

from wheeltapper.guard import Guard, fused, native, straight  # noqa: E402
from wheeltapper.guard.measure import Meter  # noqa: E402
from wheeltapper.guard.outbox import LIMIT, Outbox  # noqa: E402
from wheeltapper.guard.recorder import Recorder  # noqa: E402
from wheeltapper.guard.steps import TOGETHER  # noqa: E402

nn = torch.nn
DTYPES = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
CUDA = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))


@pytest.fixture(params=["cpu", CUDA])
def device(request: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "cpu":
        on_the_cpu(monkeypatch)
    return torch.device(request.param, 0) if request.param == "cuda" else torch.device("cpu")


@pytest.fixture(scope="module")
def library() -> Any:
    """The part in C++, which takes a compiler 15 s the first time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WHEELTAPPER_NATIVE", "1")
        found = native.Build().wait(300)
    if found is None:
        pytest.skip("no compiler")
    return found


@pytest.fixture(params=["python", "c++"])
def short(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """In which language the short way goes."""
    found = request.getfixturevalue("library") if request.param == "c++" else None
    monkeypatch.setattr(straight, "BUILD", SimpleNamespace(ask=lambda: found, over=found is None))
    return str(request.param)


def by_torch(meter: Meter) -> Meter:
    """The same parameters, measured by torch's calls."""
    other = Meter(list(meter.names), meter.params, meter.group_of.tolist(), meter.device)
    other.fused = None
    other.build_sample()
    return other


def model_of(dtype: Any, device: Any) -> Any:
    torch.manual_seed(0)
    layers = [
        nn.Conv2d(3, 8, 3),
        nn.BatchNorm2d(8),
        nn.Conv2d(8, 16, 5),
        nn.Linear(257, 400),
        nn.Linear(3, 1, bias=False),
    ]
    return nn.Sequential(*layers).to(device=device, dtype=dtype).to(memory_format=torch.channels_last)


def meter_of(model: Any) -> Meter:
    return Meter.of(torch.optim.SGD(model.parameters(), lr=0.1), {id(p): n for n, p in model.named_parameters()})


def fill(params: Any, scale: float = 1.0) -> None:
    for p in params:
        p.grad = (torch.randn(p.shape, device=p.device) * scale).to(p.dtype).as_strided(p.shape, p.stride())


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [1.0, 1e-3, 300.0])
def test_gradient_norms(device: Any, dtype: Any, scale: float) -> None:
    meter = meter_of(model_of(dtype, device))
    assert meter.fused is not None
    fill(meter.params, scale)
    found = meter.gradients()
    assert found.fused is meter.fused
    expected = torch.stack([p.grad.double().norm() for p in meter.params]).float()
    torch.testing.assert_close(found.each(), expected, rtol=3e-6, atol=0)
    theirs = by_torch(meter).gradients()
    order = theirs.plan.order.argsort()
    torch.testing.assert_close(found.each(), theirs.each()[order], rtol=1e-5, atol=0)
    torch.testing.assert_close(found.total(), theirs.total(), rtol=1e-5, atol=0)


def test_the_same_twice_and_every_address(device: Any) -> None:
    """Many pieces, views that begin at odd addresses, more tensors than one table holds, an empty one."""
    flat = torch.randn(3_000_000, device=device)
    sizes = [1_000_003, 70_001, 32_768, 32_769, 5, 0, *[17] * 500]
    params = [nn.Parameter(torch.zeros(n, device=device)) for n in sizes]
    meter = Meter([str(i) for i in range(len(params))], params, [0] * len(params), params[0].device)
    at = 1
    for p in params:
        p.grad = flat[at : at + p.numel()]
        at += p.numel() + 3
    first, again = meter.gradients().each(), meter.gradients().each()
    expected = torch.stack([p.grad.double().norm() for p in params]).float()
    torch.testing.assert_close(first, expected, rtol=2e-6, atol=0)
    assert torch.equal(first, again)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_stays_so(device: Any, bad: float) -> None:
    meter = meter_of(model_of(torch.bfloat16, device))
    fill(meter.params)
    meter.params[4].grad[-1, -1, -1, -1] = bad
    each = meter.gradients().each()
    assert [i for i, v in enumerate(each.tolist()) if not math.isfinite(v)] == [4]
    assert int(meter.gradients().bad()) == 1


def moved(meter: Meter) -> bool:
    """Write the row, where a test can see it; whether the move of the weights is in it."""
    box = Outbox(torch.device("cpu"))
    return bool(meter.fused.send([None] * 5, True, box, None))


def test_moves(device: Any) -> None:
    """‖Δw‖ and ‖w‖ over several steps, with someone writing in between, and with other storage."""
    for dtype in DTYPES:
        model = model_of(dtype, device)
        ours = meter_of(model)
        theirs = by_torch(ours)
        assert ours.fused is not None
        assert isinstance(ours.moves, fused.Moves)
        for step in range(4):
            if step == 2:
                with torch.no_grad():
                    ours.params[3].mul_(2)
            for m in (ours, theirs):
                m.moves.before()
            with torch.no_grad():
                for p in ours.params:
                    p.add_(torch.randn_like(p), alpha=0.01 * step)
            assert ours.moves.after() is True
            assert moved(ours)
            theirs_now = theirs.moves.after().tolist()
            if not theirs.moves.weights_first:
                theirs_now.reverse()
            torch.testing.assert_close(ours.row[5:7].tolist(), theirs_now, rtol=2e-5, atol=1e-12)
        ours.moves.before()
        ours.params[3].data = ours.params[3].data.clone()
        assert ours.moves.after() is True
        assert not moved(ours)  # not known, and no freed memory was read
        ours.moves.before()
        assert ours.moves.after() is True
        assert moved(ours)
        assert float(ours.row[6]) == 0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token = nn.Embedding(300, 64)
        self.body = nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 64))
        self.side = nn.Linear(64, 64)  # used in every third step only
        self.out = nn.Linear(64, 10)

    def forward(self, x: Any, side: bool) -> Any:
        h = self.body(self.token(x).mean(1))
        return self.out(self.side(h) if side else h)


def train(device: Any, guarded: bool, steps: int = 9, policy: str = "watch", poison: int = -1) -> tuple[Any, Any]:
    torch.manual_seed(3)
    model = Net().to(device)
    groups = [
        {"params": [*model.token.parameters()], "lr": 1e-3},
        {"params": [p for n, p in model.named_parameters() if "token" not in n]},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    guard = Guard(model, optimizer, every=4, clip_norm=1.0, policy=policy) if guarded else None
    if guard:
        as_on_a_device(guard)
    for k in range(steps):
        optimizer.zero_grad()
        for _ in range(2):
            x, y = torch.randint(0, 300, (16, 7), device=device), torch.randint(0, 10, (16,), device=device)
            loss = nn.functional.cross_entropy(model(x, k % 3 == 0), y) * (float("nan") if k == poison else 1.0)
            loss.backward()
            if guard:
                guard.step(loss, batch_id=k, inputs=x, targets=y)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    if guard:
        guard.close()
        assert guard.passive is None, guard.passive
    return guard, [p.detach().clone() for p in model.parameters()]


def test_a_guarded_training_by_both(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, weights = train(device, True)
    assert ours._meter.fused is not None
    _, plain = train(device, False)
    assert all(torch.equal(a, b) for a, b in zip(weights, plain, strict=True))
    monkeypatch.setattr(fused, "build", lambda *_: None)
    theirs, _ = train(device, True)
    assert theirs._meter.fused is None
    assert len(ours.history) == len(theirs.history) == 9
    for a, b in zip(ours.history, theirs.history, strict=True):
        assert a.batch_id == b.batch_id
        assert a.lr == b.lr
        assert a.clipped == b.clipped
        assert a.micro == b.micro == 2
        assert a.loss == b.loss
        assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-5)
        assert a.group_norms == pytest.approx(b.group_norms, rel=1e-5)
        assert a.update_ratio == pytest.approx(b.update_ratio, rel=1e-4)
    assert len(ours.tensors) == len(theirs.tensors) == 3
    for a, b in zip(ours.tensors, theirs.tensors, strict=True):
        assert a.absent == b.absent
        for name in ("weight_rms", "grad_rms", "update_rms", "moved", "lag", "active"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-4, atol=1e-9, err_msg=name)
    assert np.isnan(ours.tensors[1].grad_rms).sum() == 2  # step 4: the side layer has no gradient


def test_what_comes_between_guard_step_and_the_step(device: Any) -> None:
    """The rate that the step used; weights loaded in between are no update; a closure called again is one step."""
    torch.manual_seed(0)
    model = nn.Linear(30, 20).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    guard = Guard(model, optimizer, every=100)
    as_on_a_device(guard)
    start = {k: v.clone() for k, v in model.state_dict().items()}
    for k in range(6):
        if k == 3:
            model.load_state_dict({n: 7 * v for n, v in start.items()})
        loss = model(torch.ones(4, 30, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss, batch_id=k)
        optimizer.param_groups[0]["lr"] = 0.0 if k >= 2 else 0.01 * k
        optimizer.step()
    guard.close()
    assert [r.lr for r in guard.history] == [(0.0,), (0.01,), (0.0,), (0.0,), (0.0,), (0.0,)]
    assert [r.update_ratio > 0 for r in guard.history] == [False, True, False, False, False, False]


def test_a_closure_called_many_times(device: Any) -> None:
    torch.manual_seed(0)
    model = nn.Linear(30, 1).to(device)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.05, max_iter=4)
    x = torch.randn(64, 30, device=device)
    ratios = {}
    for once in (False, True):
        torch.manual_seed(1)
        model.reset_parameters()
        optimizer.state.clear()
        guard = Guard(model, optimizer, every=100)
        if once:
            as_on_a_device(guard)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (model(x) - 1).square().mean()
            loss.backward()
            guard.step(loss)  # noqa: B023
            return loss

        for _ in range(4):
            optimizer.step(closure)
        guard.close()
        ratios[once] = [r.update_ratio for r in guard.history][1:]  # the first step is a look
    assert len(ratios[True]) == 3
    assert ratios[True] == pytest.approx(ratios[False], rel=1e-4)


def test_read_many_at_a_time_unless_batches_are_kept(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wheeltapper.guard.straight.SECONDS", 1e9)
    monkeypatch.setattr("wheeltapper.guard.steps.SECONDS", 1e9)
    for kept, least in ((False, TOGETHER), (True, 1)):
        model = nn.Linear(8, 2).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        guard = Guard(model, optimizer, every=100)
        as_on_a_device(guard)
        recorder = Recorder(guard)
        counts = []
        for _ in range(3 * TOGETHER):
            x = torch.ones(4, 8, device=device)
            loss = model(recorder.keep(x) if kept else x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            guard.step(loss)
            optimizer.step()
            if device.type == "cuda":
                torch.cuda.synchronize()
            counts.append(len(guard.history))
        # The last step read is not complete before the next begins, and the first was a look, which counts as two.
        assert least <= max(b - a for a, b in pairwise(counts)) <= least + 1
        guard.close()
        assert [r.tick for r in guard.history] == list(range(3 * TOGETHER))


def test_one_who_waits_for_a_record_need_not_wait_long(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps that take long are read one by one."""
    monkeypatch.setattr("wheeltapper.guard.straight.SECONDS", 0)
    monkeypatch.setattr("wheeltapper.guard.steps.SECONDS", 0)
    loop = Single(device)
    counts = []
    for k in range(8):
        loop.once(k)
        if device.type == "cuda":
            torch.cuda.synchronize()
        counts.append(len(loop.guard.history))
    assert counts[-1] >= 6
    loop.guard.close()


class Single:
    """One micro-batch a step, two groups, one parameter that is used in every third step from the twelfth on."""

    def __init__(self, device: Any, straight: bool = True, policy: str = "watch", **options: Any) -> None:
        torch.manual_seed(3)
        self.device, self.model = device, Net().to(device)
        token = [*self.model.token.parameters()]
        rest = [p for n, p in self.model.named_parameters() if "token" not in n]
        self.optimizer = torch.optim.AdamW([{"params": token, "lr": 1e-3}, {"params": rest}], lr=1e-2)
        self.guard = Guard(self.model, self.optimizer, policy=policy, **({"every": 10, "clip_norm": 1.0} | options))
        as_on_a_device(self.guard, straight)
        self.short = 0

    def loss(self, k: int) -> Any:
        x = torch.randint(0, 300, (16, 7), device=self.device)
        y = torch.randint(0, 10, (16,), device=self.device)
        return nn.functional.cross_entropy(self.model(x, k < 12 or k % 3 == 0), y)

    def once(self, k: int) -> None:
        self.optimizer.zero_grad()
        loss = self.loss(k)
        loss.backward()
        self.guard.step(loss, batch_id=k)
        self.short += self.guard._open is not None and self.guard._open.place is not None
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()

    def run(self, steps: int) -> Any:
        for k in range(steps):
            self.once(k)
        self.guard.close()
        assert self.guard.passive is None, self.guard.passive
        return self.guard


def same(ours: Any, theirs: Any) -> None:
    assert [r.tick for r in ours.history] == [r.tick for r in theirs.history]
    for a, b in zip(ours.history, theirs.history, strict=True):
        assert (a.step, a.lr, a.batch_id, a.clipped, a.micro, a.loss_given) == (
            b.step, b.lr, b.batch_id, b.clipped, b.micro, b.loss_given,
        )  # fmt: skip
        assert a.loss == pytest.approx(b.loss, rel=1e-6)
        assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-5)
        assert a.group_norms == pytest.approx(b.group_norms, rel=1e-5)
        assert a.update_ratio == pytest.approx(b.update_ratio, rel=1e-4, nan_ok=True)


def test_the_short_way_gives_the_same(device: Any, short: str) -> None:
    quick, long = Single(device), Single(device, straight=False)
    launches, start = [0], quick.guard._meter.fused._start
    quick.guard._meter.fused._start = lambda launch: (launches.__setitem__(0, launches[0] + 1), start(launch))
    torch.manual_seed(1)
    ours = quick.run(45)
    torch.manual_seed(1)
    theirs = long.run(45)
    assert quick.short == 40  # all but five looks
    assert (quick.guard._straight._native is not None) == (short == "c++")
    assert long.short == 0
    assert launches[0] <= 40 + 5 * 6
    same(ours, theirs)
    assert all(0 < r.update_ratio < 1 for r in ours.history)
    assert all(r.step_s > 0 and math.isfinite(r.time) for r in ours.history)
    for a, b in zip(ours.tensors, theirs.tensors, strict=True):
        np.testing.assert_allclose(a.update_rms, b.update_rms, rtol=1e-4)
    assert all(torch.equal(a, b) for a, b in zip(quick.model.parameters(), long.model.parameters(), strict=True))


def test_the_short_way_left_in_the_middle(device: Any, short: str) -> None:
    """More micro-batches, a flush, a loss of another kind, none at all, weights written to, other storage,
    a group more: every step is there once, with the numbers that the long way gives."""
    found = []
    for way in (True, False):
        loop = Single(device, way)
        guard, extra = loop.guard, nn.Linear(4, 4).to(device)
        torch.manual_seed(1)
        for k in range(1, 60):
            loop.optimizer.zero_grad()
            loss = loop.loss(0)
            loss.backward()
            guard.step({16: loss.double(), 18: None, 22: loss.item()}.get(k, loss), batch_id=k)
            if k in (14, 15):
                again = loop.loss(0)
                again.backward()
                guard.step(again, batch_id=k)
            if k == 24:
                guard.flush()
            loop.optimizer.step()
            if k == 28:
                guard.flush()
            if k == 35:
                with torch.no_grad():
                    loop.model.token.weight.mul_(1.5)
            if k == 45:
                loop.model.token.weight.data = loop.model.token.weight.data.clone()
            if k == 52:
                loop.optimizer.add_param_group({"params": [*extra.parameters()], "lr": 1e-4})
            if k == 54:
                as_on_a_device(guard, way)
        guard.close()
        assert guard.passive is None, guard.passive
        assert len(guard.history) == 59
        assert not way or (guard._straight._native is not None) == (short == "c++")
        found.append(guard)
    ours, theirs = found
    for a, b in zip(ours.history, theirs.history, strict=True):
        assert (a.tick, a.micro, a.batch_id, a.loss_given) == (b.tick, b.micro, b.batch_id, b.loss_given)
        assert a.loss == pytest.approx(b.loss, rel=1e-5, nan_ok=True)
        assert a.grad_norm == pytest.approx(b.grad_norm, rel=1e-5)
        if not math.isnan(a.update_ratio) and not math.isnan(b.update_ratio):
            assert a.update_ratio == pytest.approx(b.update_ratio, rel=1e-4)
    # What the short way cannot know is how far a step went when somebody else wrote right after it; once, for then it
    # asks after each step. Neither can tell for weights that were put elsewhere.
    assert [r.tick for r in ours.history if math.isnan(r.update_ratio)] == [34]
    assert len([r for r in theirs.history if math.isnan(r.update_ratio)]) <= 2


@pytest.mark.parametrize("odd", ["half", "slice", "expanded", "sparse", "none", "back"])
def test_gradients_of_another_kind_in_the_short_way(device: Any, short: str, odd: str) -> None:
    """Told by both languages before an address is read; numbers go on."""
    p = nn.Parameter(torch.ones(64, 32, device=device))
    q = nn.Parameter(torch.ones(8, device=device))
    optimizer = torch.optim.SGD([p, q], lr=0.0)
    guard = Guard(nn.ParameterList([p, q]), optimizer, every=100)
    as_on_a_device(guard)
    wide = torch.randn(64, 64, device=device)
    expected = []
    for k in range(8):
        q.grad = torch.randn(8, device=device)
        p.grad = torch.randn(64, 32, device=device)
        if k in (4, 5):
            if odd == "half" and hasattr(p, "grad_dtype"):
                p.grad_dtype = None
                p.grad = p.grad.half()
            elif odd == "slice":
                p.grad = wide[:, ::2]
            elif odd == "expanded":
                p.grad = torch.full((1, 1), 0.5, device=device).expand(64, 32)
            elif odd == "sparse":
                p.grad = p.grad.to_sparse()
            elif odd == "none":
                p.grad = None
            else:
                p.data = p.data.clone()
        parts = [g.to_dense() if g.is_sparse else g for g in (p.grad, q.grad) if g is not None]
        expected.append(math.sqrt(sum(float(g.double().square().sum()) for g in parts)))
        guard.step(torch.tensor(1.0, device=device))
        guard._post_hook(optimizer, (optimizer,), {})
    guard.close()
    assert guard.passive is None, guard.passive
    assert [r.grad_norm for r in guard.history] == pytest.approx(expected, rel=1e-3 if odd == "half" else 1e-5)


def test_the_short_way_is_not_for_what_is_compiled(device: Any, short: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step inside of torch.compile is left alone, before it and after it all is as ever."""
    loop = Single(device)
    for k in range(6):
        loop.once(k)
    with monkeypatch.context() as patch:
        patch.setattr(torch.compiler, "is_compiling", lambda: True)
        loop.once(6)
    for k in range(7, 9):
        loop.once(k)
    loop.guard.close()
    assert loop.guard.passive is None
    assert (loop.guard._straight._native is not None) == (short == "c++")
    assert [r.batch_id for r in loop.guard.history] == [0, 1, 2, 3, 4, 5, 7, 8]


def test_the_native_step_gives_way_to_python_where_another_device_is_current(
    device: Any, library: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(straight, "BUILD", SimpleNamespace(ask=lambda: library, over=False))
    loop = Single(device)
    for k in range(1, 5):
        loop.once(k)
    assert loop.guard._straight._native is not None
    monkeypatch.setattr(loop.guard._meter.fused, "stream", lambda: None)
    for k in range(5, 9):
        loop.once(k)
    assert loop.guard._straight._native is None
    loop.guard.close()
    assert loop.guard.passive is None
    assert all(r.update_ratio > 0 and r.grad_norm > 0 for r in loop.guard.history)


def test_rows_that_the_device_writes_to_memory_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read when the device is done and not before; when it is too far behind rows are dropped and counted."""
    driver = on_the_cpu(monkeypatch)
    monkeypatch.setattr(straight.BUILD, "over", True)
    for module in ("straight", "steps"):
        monkeypatch.setattr(f"wheeltapper.guard.{module}.TOGETHER", 0)
        monkeypatch.setattr(f"wheeltapper.guard.{module}.SECONDS", 1e9)
    torch.manual_seed(0)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    guard = Guard(model, optimizer, every=10**9)
    guard.tick = 1  # no look
    as_on_a_device(guard)

    def train(steps: int) -> list[float]:
        norms = []
        for _ in range(steps):
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norms.append(math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters())))
            guard.step(loss)
            optimizer.step()
        return norms

    launched = driver.launched
    norms = train(9)
    assert driver.launched == launched + 9 + 2  # one each; the first goes the long way, to learn where the weights lie
    assert [r.grad_norm for r in guard.history] == pytest.approx(norms[:8], rel=1e-5)
    assert all(0 < r.update_ratio < 1 for r in guard.history)
    driver.busy = True
    norms += train(LIMIT + 3)
    assert (len(guard.history), len(guard._outbox), guard.dropped) == (8, LIMIT, 4)
    driver.busy = False
    guard.close()
    assert guard.passive is None
    assert [r.grad_norm for r in guard.history] == pytest.approx(norms[:-4], rel=1e-5)


def test_what_is_not_of_the_kind_is_seen_before_it_is_read(device: Any) -> None:
    """The quick check of torch against the slow one, for every way in which a gradient may be another."""
    tensors = [
        torch.randn(8, 3, 3, 3, device=device).to(memory_format=torch.channels_last),
        torch.randn(5, device=device),
    ]
    check = fused.quick_check(tensors)
    if check is None:
        pytest.skip("this torch has none")
    a, b = tensors
    assert check(a.clone(), torch.zeros_like(b))
    others = [
        a.contiguous(),
        a.half(),
        a[:4],
        a[:1].expand(8, 3, 3, 3),
        a.to_sparse(),
        a.to("meta"),
        nn.Parameter(a),
        None,
    ]
    assert [check(other, b) for other in others] == [False] * len(others)
    if device.type == "cuda":
        assert not check(a.cpu(), b)


@pytest.mark.parametrize("policy", ["skip", "rollback"])
def test_policies(device: Any, policy: str) -> None:
    guard, weights = train(device, True, 12, policy, poison=8)
    assert guard._meter.fused is not None
    assert all(bool(torch.isfinite(w).all()) for w in weights)
    assert any(i.kind == "nonfinite" for i in guard.incidents)


def test_what_the_kernels_cannot_read_goes_by_torch(device: Any, caplog: pytest.LogCaptureFixture) -> None:
    """A sparse gradient, in the third step: numbers go on, and it is said once."""
    table, head = nn.Embedding(50, 8).to(device), nn.Linear(8, 1).to(device)
    params = [*table.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(params, lr=0.1)
    guard = Guard(nn.ModuleList([table, head]), optimizer, every=100)
    as_on_a_device(guard)
    assert guard._meter.fused is not None
    norms = []
    with caplog.at_level(logging.INFO, logger="wheeltapper.guard"):
        for k in range(6):
            table.sparse = k >= 2
            loss = head(table(torch.arange(5, device=device))).square().mean()
            optimizer.zero_grad()
            loss.backward()
            norms.append(
                math.sqrt(
                    sum(
                        float((g.to_dense() if g.is_sparse else g).double().square().sum())
                        for g in (p.grad for p in params)
                    )
                )
            )
            guard.step(loss)
            optimizer.step()
    guard.close()
    assert guard.passive is None
    assert guard._meter.fused is None
    assert [r.grad_norm for r in guard.history] == pytest.approx(norms, rel=1e-5)
    assert all(r.update_ratio > 0 for r in guard.history)
    assert len([m for m in caplog.messages if "torch's own calls" in m]) == 1


def test_a_gradient_that_is_not_in_one_piece(device: Any) -> None:
    p = nn.Parameter(torch.zeros(40, 30, device=device))
    meter = Meter(["p"], [p], [0], p.device)
    p.grad = torch.ones(40, 1, device=device).expand(40, 30)
    assert float(meter.gradients().each()[0]) == pytest.approx(math.sqrt(1200))
    assert meter.fused is None


def test_without_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they cannot be compiled nothing is missing."""

    def fail(index: int) -> Any:
        raise RuntimeError("NVRTC was not found")

    monkeypatch.setattr(fused.kernel, "load", fail)
    row = (
        torch.zeros(9, device="cuda")
        if torch.cuda.is_available()
        else type("Row", (), {"device": torch.device("cuda", 0)})()
    )
    assert fused.build([nn.Parameter(torch.zeros(2))], [0], row, 7) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
def test_nothing_waits_for_the_device() -> None:
    model = nn.Sequential(*[nn.Linear(64, 64) for _ in range(20)]).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    guard = Guard(model, optimizer, every=5)
    x = torch.randn(8, 64, device="cuda")
    for k in range(23):
        loss = model(x).square().mean()
        optimizer.zero_grad(set_to_none=k % 2 == 0)
        loss.backward()
        torch.cuda.set_sync_debug_mode("error" if k > 2 else "default")
        try:
            guard.step(loss)
            optimizer.step()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    guard.close()
    assert guard.passive is None
    assert len(guard.history) == 23
    assert guard.dropped == 0
    assert guard._meter.fused is not None
