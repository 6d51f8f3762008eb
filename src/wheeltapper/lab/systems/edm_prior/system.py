"""edm-prior, after case 000: an EDM denoising prior for pictures of one to four channels of three domains."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from wheeltapper.lab.systems import Settings, Size

NAME = "edm-prior"
DESCRIPTION = "EDM denoising prior: U-Net, lognormal sigma, padded channels, accumulation, EMA, PSNR"
CASES = ("000",)
SCRIPT = Path(__file__).with_name("train.py")
UNIT = "step"
RESULT = "PSNR in dB of 96 new tiles denoised from sigma 0.3 (the noisy ones have 20.0 dB)"
EXPECTED: dict[Size, float] = {"test": 25.0, "tiny": 26.0, "full": 28.0}
NOISE = 0.08

SMALL: Settings = {
    "tile_size": 16,
    "max_files_per_domain": 300,
    "max_steps": 400,
    "batch_size": 8,
    "learning_rate": 1e-2,
    "gradient_accumulation_steps": 1,
    "model_channels": 12,
    "num_blocks": 1,
    "mixed_precision": False,
    "warmup_steps": 30,
    "gradient_clip_norm": 1.0,
    "ema_decay": 0.98,
    "lr_scheduler": "cosine",
    "val_frequency": 10,
    "save_frequency_steps": 80,
    "log_frequency": 2,
}
RECIPES: dict[Size, Settings] = {
    "test": SMALL,
    "tiny": SMALL
    | {"max_steps": 2400, "model_channels": 16, "max_files_per_domain": 1000, "warmup_steps": 100}
    | {"val_frequency": 60, "save_frequency_steps": 400, "log_frequency": 10, "ema_decay": 0.99},
    "full": SMALL
    | {"tile_size": 64, "max_steps": 4000, "model_channels": 96, "num_blocks": 3, "max_files_per_domain": 10000}
    | {"batch_size": 32, "learning_rate": 5e-4, "gradient_accumulation_steps": 2, "warmup_steps": 1000}
    | {"mixed_precision": True, "ema_decay": 0.999, "val_frequency": 100, "save_frequency_steps": 1000}
    | {"log_frequency": 50},
}


def vary(settings: Settings, rng: Random) -> Settings:
    steps = round(settings["max_steps"] * rng.choice([0.8, 1.0, 1.2]) / 40) * 40
    return settings | {
        "max_steps": steps,
        "learning_rate": round(settings["learning_rate"] * rng.uniform(0.7, 1.4), 6),
        "batch_size": rng.choice([6, 8, 8]),
        "warmup_steps": rng.choice([15, 30, 45]),
        "gradient_clip_norm": rng.choice([1.0, 1.0, 2.0]),
        "ema_decay": rng.choice([0.95, 0.98]),
        "lr_scheduler": rng.choice(["cosine", "cosine", "constant"]),
        "val_frequency": rng.choice([10, 10, 20]),
    }


def length(settings: Settings) -> int:
    return int(settings["max_steps"])


def launch(module: ModuleType, settings: Settings, folder: Path) -> Any:
    checkpoints = sorted(folder.glob("results/prior_clean/checkpoint_step_*.pth"))
    argv = []
    for key, value in settings.items():
        if isinstance(value, bool):
            argv += [f"--{key}"] if value else []
        else:
            argv += [f"--{key}", f"{value}"]
    if checkpoints:
        argv += ["--resume_checkpoint", str(checkpoints[-1].relative_to(folder))]
    (folder / "run_prior_clean.sh").write_text(shell_text(settings, argv), encoding="utf-8")
    return module.main(argv)


def shell_text(settings: Settings, argv: list[str]) -> str:
    """The launch script, with the variables of the original."""
    names = {
        "learning_rate": "LEARNING_RATE",
        "batch_size": "BATCH_SIZE",
        "gradient_accumulation_steps": "GRAD_ACCUM",
        "model_channels": "MODEL_CHANNELS",
        "num_blocks": "NUM_BLOCKS",
        "max_steps": "MAX_STEPS",
    }
    head = "".join(f"{variable}={settings[key]}\n" for key, variable in names.items())
    call = " ".join(argv)
    for key, variable in names.items():
        call = call.replace(f"--{key} {settings[key]}", f'--{key} "${variable}"')
    return f"#!/bin/bash\nset -e\n\n{head}\npython train.py {call}\n".replace(" --", " \\\n    --")


def score(weights: Any, settings: Settings) -> float:
    import torch

    from wheeltapper.lab.systems.edm_prior.data import DOMAINS, make_tiles, padded, psnr

    parts = [padded(make_tiles(domain, 32, settings["tile_size"], 555)) for domain in DOMAINS]
    clean, mask = (torch.cat(kind) for kind in zip(*parts, strict=True))
    domain = torch.eye(len(DOMAINS)).repeat_interleave(32, 0)
    device = next(weights.parameters()).device
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(6)
        noisy = clean + 0.3 * torch.randn_like(clean)
        made = weights.eval()(noisy.to(device), torch.full((len(clean),), 0.3, device=device), domain.to(device))
    return psnr(made.float().cpu(), clean, mask)


def logged(folder: Path, pattern: str) -> list[str]:
    log = folder / "logs" / "poisson_diffusion.log"
    return re.findall(pattern, log.read_text(encoding="utf-8")) if log.exists() else []


def reported(folder: Path) -> float | None:
    values = logged(folder, r"Validation PSNR: (-?[\d.]+|nan|-?inf) dB")
    return float(values[-1]) if values else None


def last_position(folder: Path) -> float:
    values = logged(folder, r"Step ([\d,]+): Loss")
    return float(values[-1].replace(",", "")) if values else 0.0
