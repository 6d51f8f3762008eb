"""The guard in Keras and in Stable-Baselines3: it measures, writes beside the framework's own log, stops, and changes nothing."""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the frameworks themselves


@pytest.fixture
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    found = pytest.importorskip("keras", reason="keras is not installed")
    if found.backend.backend() != "torch":
        pytest.skip("keras was imported with another backend")
    return found


def fitted(keras: Any, callbacks: list[Any], *, spoil: bool = False, rate: float = 1e-3) -> tuple[Any, list[Any]]:
    keras.utils.set_random_seed(3)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(256, 6)).astype("float32"), rng.integers(3, size=256)
    if spoil:
        x[100] = np.nan
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3, activation="softmax")])
    model.compile(optimizer=keras.optimizers.Adam(learning_rate=rate), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(x, y, validation_split=0.25, epochs=3, batch_size=16, verbose=0, callbacks=callbacks)
    return model, model.get_weights()


def test_keras_watched_is_the_same_training(keras: Any, tmp_path: Path) -> None:
    adapter = importlib.import_module("wheeltapper.guard.adapters.keras")
    _, alone = fitted(keras, [])
    callbacks = adapter.with_guard([keras.callbacks.CSVLogger(str(tmp_path / "run" / "history.csv"))])
    (tmp_path / "run").mkdir()
    model, watched = fitted(keras, callbacks)
    assert all(np.array_equal(a, b) for a, b in zip(alone, watched, strict=True))
    guard = callbacks[-1].session.guard
    rows = list(guard.history)
    assert len(rows) == 3 * 12
    assert all(np.isfinite(row.loss) and row.grad_norm > 0 for row in rows)
    assert rows[0].lr[0] == pytest.approx(1e-3)
    assert "apply" not in vars(model.optimizer)  # nothing of ours is left
    assert "_compute_loss" not in vars(model)
    assert guard.run_dir == tmp_path / "run"


def test_keras_stops_where_a_batch_is_not_finite(keras: Any, tmp_path: Path) -> None:
    adapter = importlib.import_module("wheeltapper.guard.adapters.keras")
    callback = adapter.GuardCallback(policy="stop", run_dir=tmp_path)
    fitted(keras, [callback], spoil=True)
    assert any(i.kind.startswith("nonfinite") for i in callback.session.incidents)
    assert callback.session.guard.tick < 3 * 12
    assert (tmp_path / "guard.jsonl").exists()


def test_keras_refuses_what_it_cannot_do(keras: Any) -> None:
    adapter = importlib.import_module("wheeltapper.guard.adapters.keras")
    with pytest.raises(adapter.InputError, match="cannot rollback"):
        adapter.GuardCallback(policy="rollback")


def learned(callback: Any, folder: Path | None, kind: str = "PPO") -> dict[str, Any]:
    sb3 = importlib.import_module("stable_baselines3")
    logger = importlib.import_module("stable_baselines3.common.logger")
    extra = {"n_steps": 64, "batch_size": 32, "n_epochs": 2} if kind == "PPO" else {"learning_starts": 32, "train_freq": 8}
    model = getattr(sb3, kind)("MlpPolicy", "CartPole-v1", seed=0, device="cpu", **extra)
    if folder is not None:
        model.set_logger(logger.configure(str(folder), ["csv"]))
    model.learn(256, callback=callback)
    return {name: value.clone() for name, value in model.policy.state_dict().items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["PPO", "DQN"])
def test_sb3_watched_is_the_same_training(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("stable_baselines3", reason="stable_baselines3 is not installed")
    adapter = importlib.import_module("wheeltapper.guard.adapters.sb3")
    alone = learned(None, tmp_path / "alone", kind)
    callback = adapter.GuardCallback()
    watched = learned(callback, tmp_path / "run", kind)
    assert all(torch.equal(alone[name], watched[name]) for name in alone)
    assert callback.session.guard.tick > 10
    assert os.path.samefile(callback.session.guard.run_dir, tmp_path / "run")
