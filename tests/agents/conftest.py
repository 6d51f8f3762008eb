"""Runs for the server: a folder that may be read, and one that may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


def write_run(folder: Path, *, steps: int = 400, spike: int | None = None, lr: float = 0.001) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for step in range(1, steps + 1):
        loss = 3.0 * 0.99**step + 0.1 + (50.0 if step == spike else 0.0)
        lines.append({"step": step, "loss": loss, "lr": lr})
        if step % 40 == 0:
            lines.append({"step": step, "val_loss": 3.0 * 0.99**step + 0.15})
    (folder / "log.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
    (folder / "config.yaml").write_text(
        f"learning_rate: {lr}\nbatch_size: 32\nmax_steps: {steps}\nlr_schedule: constant\n"
    )
    return folder


@pytest.fixture
def allowed(tmp_path: Path) -> Path:
    """root/good, root/spiky with a spike at step 203, and beside the root a run that may not be read."""
    root = tmp_path / "root"
    write_run(root / "good")
    write_run(root / "spiky", spike=203, lr=0.01)
    write_run(tmp_path / "private")
    return root
