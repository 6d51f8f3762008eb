"""Watching changes nothing, in every adapter, precision and loop, on a CPU and, where there is one, on a GPU.

`WHEELTAPPER_ALL=1` tries every combination, which is for a GPU or an idle machine; otherwise one of each kind is.
"""

from __future__ import annotations

import itertools
import math
import os
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from frameworks import ARMS, Setup, differ, present, train  # noqa: E402

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or two runs on a GPU are not the same without a guard

pytestmark = pytest.mark.filterwarnings("ignore")  # of the frameworks' own
ALL = bool(os.environ.get("WHEELTAPPER_ALL"))
DEVICES = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
CASES = [
    Setup(how, device, precision, parts, fused, checkpointed=checkpointed)
    for how, device, precision, (parts, fused), checkpointed in itertools.product(
        ARMS, DEVICES, ("fp32", "bf16", "fp16"), ((1, False), (3, True), (1, True), (3, False)), (False, True)
    )
    if (ALL or ((parts > 1) == fused == checkpointed))
]
CASES += [Setup("guard", device, precision, compiled=True) for device in DEVICES for precision in ("fp32", "bf16")][
    : None if ALL or "cuda" in DEVICES else 0
]


def name(setup: Setup) -> str:
    kinds = [setup.how, setup.device, setup.precision, f"{setup.parts}x", "fused" if setup.fused else "loop"]
    return "-".join(kinds + ["checkpointed"] * setup.checkpointed + ["compiled"] * setup.compiled)


@pytest.mark.parametrize("setup", CASES, ids=name)
def test_the_same_bits(setup: Setup, tmp_path: Path) -> None:
    if not present(setup.how):
        pytest.skip("not installed")
    if setup.precision == "fp16" and not setup.compiled:
        spoiled = 4 * setup.parts  # a step that the scaler skips
        setup = Setup(**{**vars(setup), "poison": spoiled, "poison_by": 1e6})
    plain = train(setup, None, tmp_path / "plain")
    watched = train(setup, {"every": 3}, tmp_path / "watched")
    assert differ(plain, watched) == []
    guard = watched.guard
    assert guard is not None
    assert guard.passive is None
    rows, steps = list(guard.history), setup.steps
    moved = int(plain.tensors["moment 0.step"])
    assert (moved < steps) == (setup.poison >= 0)
    told = setup.how != "callback"
    # A callback alone sees a step that the scaler skips only where the optimizer itself leaves it out.
    seen = steps if told or setup.fused else moved
    assert [r.tick for r in rows] == list(range(seen))
    assert sum(r.skipped for r in rows) == seen - moved
    assert all(r.micro == (setup.parts if told else 1) and r.before_clip is told for r in rows)
    assert [i.kind for i in guard.incidents if i.severity != "note"] == []
    if not setup.compiled:
        means = [sum(plain.losses[k : k + setup.parts]) / setup.parts for k in range(0, len(plain.losses), setup.parts)]
        order = iter(means)
        assert all(any(near(r.loss, m) for m in order) for r in rows), ([r.loss for r in rows], means)
        if told and setup.poison >= 0:
            assert rows[4].skipped
    # Unscaled: a norm that still had the loss scale in it would be 65536 times as large.
    assert all(1e-3 < r.grad_norm < 100 for r in rows if not r.skipped), [r.grad_norm for r in rows]
    looks = list(guard.tensors)
    assert len(looks) >= 2
    assert all(look.absent == () for look in looks)
    for look in looks:  # of the step's own gradients, also where a closure makes them
        row = next(r for r in rows if r.tick == look.tick)
        if told and not row.skipped:
            sizes = [p.numel() for p in guard._meter.params]
            norm = math.sqrt(sum(n * g * g for n, g in zip(sizes, look.grad_rms.tolist(), strict=True)))
            assert norm == pytest.approx(row.grad_norm, rel=1e-2)


def near(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-5) or not (math.isfinite(a) or math.isfinite(b))


def test_the_comparison_can_fail(tmp_path: Path) -> None:
    a, b = (train(Setup(poison=k), None, tmp_path) for k in (-1, 7))
    c = train(Setup(), None, tmp_path)
    torch.rand(())
    assert differ(a, c) == []
    assert "weight body.0.weight" in differ(a, b)
    assert "loss 7" in differ(a, b)


def broken(*_: Any, **__: Any) -> Any:
    raise ZeroDivisionError("planted")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("how", ARMS)
@pytest.mark.parametrize(
    "rule",
    [
        "judge.Judge.step",
        "judge.Judge.tensors",
        "measure.Meter.gradients",
        "recorder.Recorder.keep",
        "ask.Asker.findings",
    ],
)
def test_a_rule_that_raises_changes_nothing_and_is_told(
    how: str, device: str, rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    if not present(how):
        pytest.skip("not installed")
    module, _, rest = rule.partition(".")
    plain = train(Setup(how, device), None, tmp_path / "plain")
    monkeypatch.setattr(f"wheeltapper.guard.{module}.{rest}", broken)
    watched = train(Setup(how, device), {"every": 3}, tmp_path / "watched")
    monkeypatch.undo()
    assert differ(plain, watched) == []
    guard = watched.guard
    assert guard is not None
    used = {"recorder": how in ("context", "trainer", "lightning"), "ask": how != "guard"}.get(module, True)
    told = [r for r in caplog.records if r.name == "wheeltapper.guard" and r.exc_info]
    assert len(told) == int(used)
    if used and module != "ask":  # the signs that break are left out; the guard goes on
        assert guard.passive is not None
        assert "ZeroDivisionError" in guard.passive
        assert [i.kind for i in guard.incidents] == ["guard"]
    else:
        assert guard.passive is None
        assert len(guard.history) == 8
