"""Folders of small runs in several shapes, for tests and for benchmarks/fleet.py. No two hold the same content."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

SHAPES = ("sound", "sound", "sound", "diverged", "overfitted", "chance", "unfinished")


def write_run(folder: Path, seed: int) -> None:
    draw = random.Random(seed)
    shape = SHAPES[seed % len(SHAPES)]
    rate = 10 ** draw.uniform(-4, -1)
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        f"optimizer: {draw.choice(['adamw', 'sgd'])}\nlr: {rate:.6g}\nbatch_size: {draw.choice([32, 64, 128])}\n"
        f"epochs: 20\nweight_decay: {draw.choice([0.0, 0.01, 0.1])}\ndropout: {draw.choice([0.0, 0.1])}\nseed: {seed}\n"
    )
    rows = []
    steps = 30 if shape == "unfinished" else 60
    for step in range(steps):
        loss = 0.4 + 1.9 * math.exp(-step / 12) + draw.gauss(0, 0.02)
        if shape == "diverged" and step > 35:
            loss = float("nan") if step > 45 else loss * 2 ** (step - 35)
        if shape == "chance":
            loss = 2.3 + draw.gauss(0, 0.01)
        rows.append({"step": 10 * (step + 1), "epoch": (step + 1) / 3, "train/loss": loss, "lr": rate * (1 - step / 60)})
        if step % 3 == 2:
            part = step / 60
            accuracy = 0.1 + 0.01 * draw.random() if shape == "chance" else 0.1 + 0.75 * (1 - math.exp(-4 * part))
            held = loss + 0.1 + (1.5 * part * part if shape == "overfitted" else 0)
            rows.append({"step": 10 * (step + 1), "epoch": (step + 1) / 3, "val/loss": held, "val/accuracy": accuracy})
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def fleet_at(top: Path, runs: int) -> None:
    for number in range(runs):
        folder = top / f"group{number // 500:02d}" / f"run-{number:05d}"
        if not folder.exists():
            write_run(folder, number)
