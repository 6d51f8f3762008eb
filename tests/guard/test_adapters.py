"""Every adapter against a stand-in of its framework, which needs not be installed: the training is the same to the bit,
and every step is seen. test_identity.py has the frameworks themselves."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from wheeltapper.guard.adapters.accelerate import guard_accelerator  # noqa: E402
from wheeltapper.guard.session import guarded  # noqa: E402


class Net(nn.Module):
    """A small classifier that returns its loss, as a Hugging Face model does."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))

    def forward(self, x: Any, labels: Any = None) -> Any:
        logits = self.body(x)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def data(n: int = 48) -> list[dict[str, Any]]:
    generator = torch.Generator().manual_seed(5)
    return [{"x": torch.randn(6, generator=generator), "labels": torch.tensor(i % 3)} for i in range(n)]


def trace(model: nn.Module) -> list[float]:
    """The weights, and a draw from the generator: equal only if nothing was changed and nothing was drawn."""
    return [*torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(), float(torch.rand(()))]


def same(train: Callable[[bool], list[float]]) -> None:
    torch.set_num_threads(1)
    assert train(False) == train(True)


# A loop of one's own


def test_plain_loop(tmp_path: Path) -> None:
    seen: list[Any] = []

    def train(watch: bool) -> list[float]:
        torch.manual_seed(1)
        model = Net()
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        session = guarded(model, optimizer, run_dir=tmp_path, total_steps=24) if watch else None
        if session is not None:
            session.__enter__()
        for i in range(24):
            batch = data()[2 * i : 2 * i + 2] or data()[:2]
            x, y = torch.stack([b["x"] for b in batch]), torch.stack([b["labels"] for b in batch])
            loss = model(x, y)["loss"]
            loss.backward()
            if session is not None:
                session.keep((x, y))
                session.step(loss, batch_id=i)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if session is not None:
            session.metric({"val/loss": 1.0})
            session.__exit__(None, None, None)
            seen.extend(session.guard.history)
            assert session.guard.passive is None
        return trace(model)

    same(train)
    assert [r.step for r in seen] == list(range(24))
    assert all(math.isfinite(r.loss) and r.before_clip for r in seen)
    assert seen[3].batch_id == 3


def test_a_crash_inside_the_context_is_written(tmp_path: Path) -> None:
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    session = guarded(model, optimizer, run_dir=tmp_path, ask=False)
    optimizer.step()
    with pytest.raises(ZeroDivisionError), session:
        raise ZeroDivisionError("planted")
    assert [p.name for p in tmp_path.glob("incident-*")] == ["incident-1"]
    assert session.guard._hooks == []


# accelerate


class FakeAccelerator:
    """What the adapter uses of accelerate.Accelerator."""

    scaler = None

    def backward(self, loss: Any, **kwargs: Any) -> None:
        (loss / 2).backward(**kwargs)


def test_accelerate_like() -> None:
    accelerator = FakeAccelerator()

    def train(watch: bool) -> list[float]:
        torch.manual_seed(2)
        model = Net()
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        session = guard_accelerator(accelerator, model, optimizer) if watch else None
        for i in range(20):
            batch = data()[2 * i : 2 * i + 2]
            loss = model(torch.stack([b["x"] for b in batch]), torch.stack([b["labels"] for b in batch]))["loss"]
            accelerator.backward(loss)
            if i % 2:
                optimizer.step()
                optimizer.zero_grad()
        if session is not None:
            session.close()
            assert [r.micro for r in session.guard.history] == [2] * 10
            assert all(math.isfinite(r.loss) and math.isfinite(r.grad_norm) for r in session.guard.history)
        return trace(model)

    same(train)
    assert "backward" not in accelerator.__dict__, "the accelerator has its method back"


# Hugging Face


@pytest.fixture
def fake_transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Stands in for the package, so that the adapter is tested where it is not installed."""
    fake = ModuleType("transformers")
    fake.TrainerCallback = object  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "transformers", fake)
    monkeypatch.delitem(sys.modules, "wheeltapper.guard.adapters.hf", raising=False)
    yield
    sys.modules.pop("wheeltapper.guard.adapters.hf", None)


class FakeTrainer:
    """The order of calls of a Trainer: begin, training_step for each micro-batch, clip, step, end."""

    def __init__(self, model: Any, folder: Path, parts: int) -> None:
        self.model, self.callbacks = model, []
        self.model_wrapped = nn.Sequential(model)  # as DDP holds the model
        self.scaler = torch.amp.GradScaler("cpu", enabled=False)
        self.args = SimpleNamespace(
            output_dir=str(folder), max_grad_norm=1.0, gradient_accumulation_steps=parts, to_dict=lambda: {"lr": 0.1}
        )

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def training_step(self, model: Any, inputs: Any, _items: Any = None) -> Any:
        loss = model(**inputs)["loss"] / self.args.gradient_accumulation_steps
        loss.backward()
        return loss.detach()

    def train(self, steps: int = 8) -> None:
        optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2)
        state = SimpleNamespace(max_steps=steps, global_step=0)
        control = SimpleNamespace(should_training_stop=False, should_save=False)
        tell = list(self.callbacks)
        for c in tell:
            c.on_train_begin(
                self.args,
                state,
                control,
                model=self.model,
                optimizer=SimpleNamespace(optimizer=optimizer, scaler=self.scaler),
            )
        items, parts = data(), self.args.gradient_accumulation_steps
        for i in range(steps * parts):
            batch = items[2 * i : 2 * i + 2]
            inputs = {k: torch.stack([b[k] for b in batch]) for k in batch[0]}
            self.training_step(self.model, inputs, None)
            if (i + 1) % parts == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                state.global_step += 1
                for c in tell:
                    c.on_step_end(self.args, state, control)
        for c in tell:
            c.on_evaluate(self.args, state, control, metrics={"eval_loss": 1.0})
            c.on_train_end(self.args, state, control)


@pytest.mark.parametrize("parts", [1, 2])
def test_trainer_like(tmp_path: Path, fake_transformers: Any, parts: int) -> None:
    from wheeltapper.guard.adapters.hf import GuardCallback, guard_trainer

    for how in ("wrapped", "callback"):

        def train(watch: bool, how: str = how) -> list[float]:
            torch.manual_seed(3)
            trainer = FakeTrainer(Net(), tmp_path, parts)
            callback: Any = None
            if watch and how == "wrapped":
                callback = guard_trainer(trainer)
            elif watch:
                callback = GuardCallback()
                trainer.add_callback(callback)
            trainer.train()
            if callback is not None:
                records = list(callback.session.guard.history)
                assert [r.step for r in records] == list(range(8))
                assert [r.micro for r in records] == [parts if how == "wrapped" else 1] * 8
                assert all(r.before_clip == (how == "wrapped") and r.grad_norm > 0 for r in records)
                assert callback.session.guard.scaler is trainer.scaler
                assert callback.session.guard.model is (trainer.model_wrapped if how == "wrapped" else trainer.model)
                assert 0.5 < records[0].loss < 2.0, "the loss of a micro-batch, not a share of it"
                assert callback.session.asker.history.metrics["eval_loss"] == [(8.0, 1.0)]
            return trace(trainer.model)

        same(train)


# Lightning


@pytest.fixture
def fake_lightning(monkeypatch: pytest.MonkeyPatch) -> Any:
    for name in ("lightning", "lightning.pytorch", "lightning.pytorch.callbacks"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["lightning.pytorch.callbacks"].Callback = object  # type: ignore[attr-defined]
    monkeypatch.delitem(sys.modules, "wheeltapper.guard.adapters.lightning", raising=False)
    yield
    sys.modules.pop("wheeltapper.guard.adapters.lightning", None)


def test_lightning_like(tmp_path: Path, fake_lightning: Any) -> None:
    from wheeltapper.guard.adapters.lightning import GuardCallback

    def train(watch: bool) -> list[float]:
        torch.manual_seed(6)
        model = Net()
        optimizer = torch.optim.Adam(model.parameters(), 1e-2)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 4)
        trainer = SimpleNamespace(lr_scheduler_configs=[SimpleNamespace(scheduler=scheduler)],
            optimizers=[optimizer], estimated_stepping_batches=10, default_root_dir=str(tmp_path), global_step=0,
            precision_plugin=object(), gradient_clip_val=1.0, gradient_clip_algorithm=None, accumulate_grad_batches=2,
            current_epoch=0, should_stop=False, sanity_checking=False,
            callback_metrics={"val_loss": torch.tensor(1.5), "train_loss": torch.tensor(1.0)},
        )  # fmt: skip
        callbacks = [GuardCallback()] if watch else []
        for c in callbacks:
            c.on_train_start(trainer, model)
        for i in range(20):
            batch = data()[2 * i : 2 * i + 2]
            inputs = {k: torch.stack([b[k] for b in batch]) for k in batch[0]}
            for c in callbacks:
                c.on_train_batch_start(trainer, model, inputs, i)

            def closure(inputs: Any = inputs, i: int = i) -> Any:
                loss = model(**inputs)["loss"] / 2
                if i % 2 == 0:
                    optimizer.zero_grad()
                for c in callbacks:
                    c.on_before_backward(trainer, model, loss)
                loss.backward()
                for c in callbacks:
                    c.on_after_backward(trainer, model)
                return loss

            if i % 2:
                optimizer.step(closure)
                scheduler.step()
            else:
                closure()
            for c in callbacks:
                c.on_train_batch_end(trainer, model, None, batch, i)
        for c in callbacks:
            c.on_validation_end(trainer, model)
            assert list(c.session.asker.history.metrics) == ["val_loss"]
            c.on_train_end(trainer, model)
            assert [r.micro for r in c.session.guard.history] == [2] * 10
            assert 0.5 < c.session.guard.history[0].loss < 2.0
            assert c.session.guard.history[1].batch_id == ((0, 2), (0, 3))
            assert c.session.guard.tensors[0].absent == ()  # looked at after the closure, not before
            assert c.session.guard.scheduler is scheduler
        return trace(model)

    same(train)
