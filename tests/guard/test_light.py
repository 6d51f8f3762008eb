"""The guard works where only torch and numpy are installed, and compiled models are no trouble to it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

SRC = Path(__file__).resolve().parents[2] / "src"

BARE = """
import sys
for name in ("msgspec", "yaml", "rich", "jinja2"):
    sys.modules[name] = None  # importing it raises
import torch
from wheeltapper.guard import Guard
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with Guard(model, optimizer, every=2) as guard:
    for k in range(4):
        loss = model(torch.ones(2, 3)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
assert guard.passive is None, guard.passive
print(len(guard.history), len(guard.tensors))
"""


def test_only_torch_and_numpy() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SRC), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", BARE], capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["4", "2"]


def test_a_compiled_model() -> None:
    """With the eager backend: what the guard meets is the wrapper, not the generated code."""
    from wheeltapper.guard import Guard

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    compiled = torch.compile(model, backend="eager")
    optimizer = torch.optim.AdamW(compiled.parameters(), lr=1e-2)
    guard = Guard(compiled, optimizer, policy="rollback", snapshot_every=5)
    for k in range(30):
        x = torch.randn(8, 4) * (float("nan") if k == 25 else 1.0)
        loss = compiled(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        guard.step(loss)
        optimizer.step()
    guard.close()
    assert guard.passive is None
    assert guard.names == ("0.weight", "0.bias", "2.weight", "2.bias")
    assert [i.action for i in guard.incidents if i.action] == ["rollback"]
    assert all(bool(torch.isfinite(p).all()) for p in model.parameters())
