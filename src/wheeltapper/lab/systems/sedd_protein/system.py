"""sedd-protein, after case 003: score-entropy discrete diffusion on protein-like sequences."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from wheeltapper.lab.systems import Settings, Size

NAME = "sedd-protein"
DESCRIPTION = "discrete diffusion on sequences: absorbing or uniform graph, curriculum, EMA, accumulation, generation"
CASES = ("003",)
SCRIPT = Path(__file__).with_name("train.py")
UNIT = "step"
RESULT = "minus the loss in nats per residue on 512 new sequences under full noise (untrained: -3.0)"
EXPECTED: dict[Size, float] = {"test": -1.75, "tiny": -1.6, "full": -1.55}
NOISE = 0.03

SMALL: Settings = {
    "n_iters": 640,
    "batch_size": 16,
    "accum": 2,
    "max_samples": 960,
    "length": 16,
    "hidden_size": 32,
    "n_blocks": 2,
    "n_heads": 2,
    "dropout": 0.05,
    "graph": "absorb",
    "noise": "loglinear",
    "sigma_min": 1e-4,
    "sigma_max": 8.0,
    "eps_noise": 1e-3,
    "lr": 1.2e-2,
    "warmup": 40,
    "weight_decay": 0.01,
    "beta2": 0.99,
    "grad_clip": 1.0,
    "ema": 0.98,
    "curriculum": False,
    "preschool_time": 320,
    "difficulty_ramp": "linear",
    "log_freq": 4,
    "eval_freq": 20,
    "snapshot_freq": 160,
}
RECIPES: dict[Size, Settings] = {
    "test": SMALL,
    "tiny": SMALL
    | {"n_iters": 3200, "max_samples": 4000, "hidden_size": 48, "warmup": 100, "log_freq": 10, "eval_freq": 80}
    | {"snapshot_freq": 800, "ema": 0.99, "preschool_time": 1600},
    "full": SMALL
    | {"n_iters": 8000, "batch_size": 64, "max_samples": 200000, "length": 64, "hidden_size": 256, "n_blocks": 6}
    | {"n_heads": 8, "lr": 1e-3, "warmup": 1000, "log_freq": 40, "eval_freq": 200, "snapshot_freq": 2000}
    | {"ema": 0.999, "preschool_time": 4000},
}


def vary(settings: Settings, rng: Random) -> Settings:
    total = round(settings["n_iters"] * rng.choice([0.8, 1.0, 1.2]) / 80) * 80
    return settings | {
        "n_iters": total,
        "preschool_time": total // 2,
        "lr": round(settings["lr"] * rng.uniform(0.7, 1.4), 6),
        "warmup": rng.choice([20, 40, 60]),
        "batch_size": rng.choice([16, 16, 20]),
        "ema": rng.choice([0.95, 0.98]),
        "weight_decay": rng.choice([0.0, 0.01]),
        "dropout": rng.choice([0.0, 0.05]),
        "grad_clip": rng.choice([1.0, 1.0, 2.0]),
        "eval_freq": rng.choice([20, 20, 40]),
    }


def length(settings: Settings) -> int:
    return int(settings["n_iters"])


def yaml_text(settings: Settings) -> str:
    s = settings

    def number(value: float) -> str:
        return f'!!float "{value:g}"'

    return f"""# UniRef50-like training
work_dir: .
model:
  name: small
  type: ddit
  hidden_size: {s["hidden_size"]}
  cond_dim: {s["hidden_size"]}
  length: {s["length"]}
  n_blocks: {s["n_blocks"]}
  n_heads: {s["n_heads"]}
  scale_by_sigma: true
  dropout: {s["dropout"]}

ngpus: 1
tokens: 20

training:
  batch_size: {s["batch_size"]}
  accum: {s["accum"]}
  max_samples: {s["max_samples"]}
  seed: {s["seed"]}
  n_iters: {s["n_iters"]}
  snapshot_freq: {s["snapshot_freq"]}
  log_freq: {s["log_freq"]}
  eval_freq: {s["eval_freq"]}
  weight: standard
  ema: {s["ema"]}

graph:
  type: {s["graph"]}

noise:
  type: {s["noise"]}
  sigma_min: {number(s["sigma_min"])}
  sigma_max: {s["sigma_max"]}
  eps: {number(s["eps_noise"])}

sampling:
  predictor: analytic
  steps: 16

optim:
  weight_decay: {s["weight_decay"]}
  optimizer: AdamW
  lr: {number(s["lr"])}
  beta1: 0.9
  beta2: {s["beta2"]}
  eps: {number(1e-8)}
  warmup: {s["warmup"]}
  grad_clip: {s["grad_clip"]}

curriculum:
  enabled: {"true" if s["curriculum"] else "false"}
  preschool_time: {s["preschool_time"]}
  difficulty_ramp: {s["difficulty_ramp"]}
"""


def launch(module: ModuleType, settings: Settings, folder: Path) -> Any:
    (folder / "config.yaml").write_text(yaml_text(settings), encoding="utf-8")
    (folder / "run.sh").write_text("#!/bin/bash\npython train.py --work_dir . --config config.yaml\n", encoding="utf-8")
    return module.main(["--work_dir", ".", "--config", "config.yaml"])


def score(weights: Any, settings: Settings) -> float:
    """Minus the held-out loss under the full noise that generation starts from, whatever it was trained on."""
    import torch

    from wheeltapper.lab.systems.sedd_protein.data import make_sequences
    from wheeltapper.lab.systems.sedd_protein.model import Noise

    model, _ = weights
    device = next(model.parameters()).device
    held = make_sequences(512, settings["length"], 987_654).to(device)
    noise, graph = Noise("loglinear", 1e-4, 8.0), model.graph
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(4321)
        times = torch.linspace(0.02, 0.98, len(held), device=device)
        sigma = noise.total(times)
        x = graph.corrupt(held, sigma)
        losses = noise.rate(times) * graph.entropy(model.eval()(x, sigma), sigma, x, held)
    return -float(losses.mean() / settings["length"])


def logged(folder: Path, pattern: str) -> list[str]:
    log = folder / "train.out"
    return re.findall(pattern, log.read_text(encoding="utf-8")) if log.exists() else []


def reported(folder: Path) -> float | None:
    values = logged(folder, r"Validation loss at step \d+: (-?[\d.]+|-?inf|nan)")
    return -float(values[-1]) if values else None


def memory(folder: Path) -> float:
    """How much the printed memory grew after the first fifth of the run, in MiB."""
    values = [float(value) for value in logged(folder, r"gpu_mem=([\d.]+)GB")]
    return 1024 * (values[-1] - values[len(values) // 5]) if len(values) > 10 else 0.0


def last_position(folder: Path) -> float:
    values = logged(folder, r"step=(\d+)/")
    return float(values[-1]) if values else 0.0
