"""What two checkpoints prove: layers that nothing trains, averages that do not follow, and who is to blame."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import falling, top

from wheeltapper.diagnosis.diagnose import diagnose_run
from wheeltapper.finding import Finding
from wheeltapper.run.model import Run
from wheeltapper.signals import Absent, Signals
from wheeltapper.signals.weights import Weight, fresh
from wheeltapper.sources.checkpoint_file import TensorStart, tensor_starts
from wheeltapper.testing import ask_sign, make_checkpoint, make_run

DRAW = np.random.default_rng(3)


def trained(run: dict[str, Any], files: list[Path], config: str = "") -> Run:
    return make_run({"train/loss": falling(60).tolist(), **run}, spacing=10, checkpoints=files, config=config)


def weight(values: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Weight:
    start = TensorStart("float32", shape, values.astype("<f4").ravel())
    return Weight("w", "raw", "", start, start)


@pytest.mark.parametrize("shape", [(64, 32), (16, 8, 3, 3)])
def test_the_laws_that_frameworks_draw_from(shape: tuple[int, ...]) -> None:
    fan_in, fan_out = int(np.prod(shape[1:])), int(shape[0] * np.prod(shape[2:]))
    for law in (
        DRAW.uniform(-(fan_in**-0.5), fan_in**-0.5, shape),
        DRAW.uniform(-((6 / (fan_in + fan_out)) ** 0.5), (6 / (fan_in + fan_out)) ** 0.5, shape),
        DRAW.normal(0, (2 / fan_out) ** 0.5, shape),
        DRAW.normal(0, 0.02, shape),
    ):
        assert fresh(weight(law, shape))
        assert not fresh(weight(50 * law, shape))
        assert not fresh(weight(law + law.std() * DRAW.standard_t(3, shape), shape))
    assert not fresh(weight(np.zeros(shape), shape))
    assert not fresh(weight(np.full(shape, np.nan), shape))


def test_torch_draws_by_these_laws() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for layer in (torch.nn.Linear(48, 96), torch.nn.Conv2d(6, 24, 3), torch.nn.Conv1d(16, 16, 5)):
        values = layer.weight.detach().numpy()
        assert fresh(weight(values, values.shape))


def a_state(torch: Any, path: Path, *, held: str, given: int, step: int) -> Path:
    """A model of a body and a head after some steps; `held` stays as drawn, `given` parameters are in the optimizer."""
    torch.manual_seed(0)
    model = torch.nn.ModuleDict({"body": torch.nn.Linear(32, 64), "head": torch.nn.Linear(64, 8)})
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters[-given:], 0.1, momentum=0.9)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.startswith(held):
                parameter.add_(torch.randn_like(parameter), alpha=step / 1000)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, path)
    return path


@pytest.mark.parametrize(("given", "cause"), [(2, "params-not-in-optimizer"), (4, "frozen-parameters")])
def test_a_body_that_nothing_trains(tmp_path: Path, given: int, cause: str) -> None:
    """The loss falls, for the head learns around a random body; only the weights show it."""
    torch = pytest.importorskip("torch")
    files = [a_state(torch, tmp_path / f"model_{s}.pt", held="body", given=given, step=s) for s in (100, 500)]
    diagnosis = diagnose_run(trained({}, files))
    assert diagnosis.verdict == "ill"
    assert top(diagnosis, 1) == [cause]


def test_a_model_that_moves_is_sound(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    files = [a_state(torch, tmp_path / f"model_{s}.pt", held="none", given=4, step=s) for s in (100, 500)]
    assert diagnose_run(trained({}, files)).verdict == "sound"


def average(folder: Path, dtype: str, moves: float) -> list[Path]:
    first, noise = DRAW.standard_normal((2, 64, 64))
    last = first + 0.05 * noise
    return [
        make_checkpoint(folder / "net_g_100.safetensors", {"w": 1.3 * first}),
        make_checkpoint(folder / "net_g_500.safetensors", {"w": 1.3 * last}),
        make_checkpoint(folder / "net_g_ema_100.safetensors", {"w": first}, dtype),
        make_checkpoint(folder / "net_g_ema_500.safetensors", {"w": first + moves * (1.3 * last - first)}, dtype),
    ]


def test_an_average_that_rounding_holds(tmp_path: Path) -> None:
    """Trained for real: the weights drift, the average follows them in fp32 and stays behind in bf16."""
    torch = pytest.importorskip("torch")

    def run(dtype: Any) -> Run:
        torch.manual_seed(0)
        weights = torch.randn(64, 64)
        averaged, aim, files = weights.to(dtype), weights + 0.2 * torch.randn(64, 64), []
        for step in range(1, 501):
            weights = weights + 0.01 * (aim - weights)
            averaged = averaged + (1 - 0.999) * (weights.to(dtype) - averaged)
            if step in (100, 500):
                optimizer = {"state": {0: {"exp_avg": weights}}, "param_groups": [{"lr": 1e-3, "params": [0]}]}
                files.append(tmp_path / f"{dtype}_{step}.pt".replace("torch.", ""))
                torch.save({"model": {"w": weights}, "ema": {"w": averaged}, "optimizer": optimizer, "step": step}, files[-1])
        return trained({}, files, "ema_decay: 0.999\n")

    stuck = diagnose_run(run(torch.bfloat16))
    assert stuck.verdict == "ill"
    assert top(stuck, 1) == ["ema-low-precision"]
    assert diagnose_run(run(torch.float32)).verdict == "sound"


def test_a_copy_of_an_average_is_not_judged_by_its_few_digits(tmp_path: Path) -> None:
    """Half-precision files of a sound average repeat where the weights only swing about it."""
    assert diagnose_run(trained({}, average(tmp_path, "BF16", 0.0), "ema_decay: 0.999\n")).verdict == "sound"
    assert diagnose_run(trained({}, average(tmp_path, "F32", 0.0), "ema_decay: 0.999\n")).verdict == "ill"


def test_an_average_with_the_statistics_of_the_untrained_model(tmp_path: Path) -> None:
    def state(shift: float, seen: float) -> dict[str, Any]:
        return {"w": np.arange(9.0) + shift, "bn.running_mean": np.full(4, seen), "bn.running_var": np.full(4, 1 + seen)}

    files = [
        make_checkpoint(tmp_path / "net_g_100.safetensors", state(0.1, 0.1)),
        make_checkpoint(tmp_path / "net_g_500.safetensors", state(0.5, 0.5)),
        make_checkpoint(tmp_path / "net_g_ema_100.safetensors", state(0.05, 0.0)),
        make_checkpoint(tmp_path / "net_g_ema_500.safetensors", state(0.4, 0.0)),
    ]
    diagnosis = diagnose_run(trained({}, files))
    assert diagnosis.verdict == "ill"
    assert top(diagnosis, 1) == ["ema-buffers-stale"]


@pytest.mark.filterwarnings("error")
def test_weights_that_are_not_finite(tmp_path: Path) -> None:
    """A run that broke leaves NaN and huge numbers: nothing is said of them here, and nothing is warned of."""
    broken = np.array([[np.nan, np.inf, -np.inf, 0.0] * 8, [1e30, -1e30, 1e-30, 1.0] * 8])
    files = [
        make_checkpoint(tmp_path / f"net_g{ema}_{step}.safetensors", {"w": np.tile(broken, (4, 1)), "v": step * np.ones((8, 9))})
        for ema in ("", "_ema")
        for step in (100, 500)
    ]
    run = trained({}, files)
    assert [a for sign in ("weights-stand-still", "average-stands-still") for a in ask_sign(sign, run) if isinstance(a, Finding)] == []


def test_files_that_are_gone_or_cut_off(tmp_path: Path) -> None:
    """A checkpoint may be deleted or rewritten between the listing and the look."""
    files = average(tmp_path, "F32", 0.3)
    run = trained({}, files)
    files[0].write_bytes(files[0].read_bytes()[:40])
    files[1].unlink()
    with pytest.raises(Absent):
        Signals(run).get("weights")


def test_only_the_start_of_a_tensor_is_read(tmp_path: Path) -> None:
    path = make_checkpoint(tmp_path / "big.safetensors", {"a": np.arange(1000.0), "b": np.ones(3)})
    found = tensor_starts(path, ["a"], 16)
    assert set(found) == {"a"}
    assert found["a"].values().tolist() == list(range(16))
    assert found["a"].shape == (1000,)
