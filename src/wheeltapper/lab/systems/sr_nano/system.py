"""sr-nano, after cases 001 and 002: a ParagonSR2-like x2 network trained the way traiNNer-redux does it."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from types import ModuleType
from typing import Any

from wheeltapper.lab.systems import Settings, Size

NAME = "sr-nano"
DESCRIPTION = "x2 super-resolution: L1 + SSIM, dynamic loss scheduling, fp16 with GradScaler, EMA, PSNR/SSIM"
CASES = ("001", "002")
SCRIPT = Path(__file__).with_name("train.py")
UNIT = "step"
RESULT = "PSNR in dB of the averaged weights on the validation pictures, whole and unresized"
EXPECTED: dict[Size, float] = {"test": 30.0, "tiny": 30.5, "full": 31.0}
NOISE = 0.06
LAB_NAME = "2xParagonSR2_Nano"

SMALL: Settings = {
    "total_iter": 400,
    "lr": 1e-2,
    "weight_decay": 1e-4,
    "optimizer": "AdamW",
    "scheduler": "MultiStepLR",
    "milestones": [200, 300],
    "T_max": 400,
    "eta_min": 1e-6,
    "T_0": 100,
    "warmup_iter": 30,
    "ema_decay": 0.98,
    "ema_power": 0.75,
    "grad_clip": True,
    "ssim_weight": 0.05,
    "gan_weight": 0.0,
    "lr_d": 1e-4,
    "dynamic_loss_scheduling": True,
    "use_amp": True,
    "amp_bf16": False,
    "batch": 8,
    "accum_iter": 1,
    "lq_size": 16,
    "images": 48,
    "val_images": 8,
    "image_size": 64,
    "train_image_size": 64,
    "dim": 16,
    "blocks": 1,
    "print_freq": 5,
    "val_freq": 10,
    "save_freq": 100,
    "unknown_key": "",
    "eta_as_text": False,
}
RECIPES: dict[Size, Settings] = {
    "test": SMALL,
    "tiny": SMALL
    | {"total_iter": 2000, "milestones": [1000, 1500], "T_max": 2000, "T_0": 500, "warmup_iter": 100, "blocks": 2}
    | {"images": 200, "val_images": 16, "print_freq": 20, "val_freq": 50, "save_freq": 500, "ema_decay": 0.995},
    "full": SMALL
    | {"total_iter": 6000, "milestones": [3000, 4500], "T_max": 6000, "T_0": 1500, "warmup_iter": 300}
    | {
        "dim": 48,
        "blocks": 6,
        "batch": 16,
        "lq_size": 64,
        "image_size": 256,
        "train_image_size": 256,
        "images": 400,
        "val_images": 32,
    }
    | {"print_freq": 50, "val_freq": 200, "save_freq": 2000, "ema_decay": 0.999, "lr": 5e-4},
}


def vary(settings: Settings, rng: Random) -> Settings:
    total = round(settings["total_iter"] * rng.choice([0.8, 1.0, 1.2]) / 40) * 40
    return settings | {
        "total_iter": total,
        "lr": round(settings["lr"] * rng.uniform(0.7, 1.4), 6),
        "scheduler": rng.choice(["MultiStepLR", "MultiStepLR", "CosineAnnealingLR"]),
        "milestones": [round(total * rng.uniform(0.45, 0.6)), round(total * rng.uniform(0.7, 0.85))],
        "T_max": total,
        "T_0": total // 4,
        "warmup_iter": round(settings["warmup_iter"] * rng.choice([0.5, 1.0, 2.0])),
        "ema_decay": rng.choice([0.95, 0.97, 0.98]),
        "grad_clip": rng.random() < 0.7,
        "ssim_weight": rng.choice([0.0, 0.05, 0.1]),
        "dynamic_loss_scheduling": rng.random() < 0.5,
        "use_amp": rng.random() < 0.7,
        "amp_bf16": rng.random() < 0.3,
        "val_freq": rng.choice([10, 10, 20]),
        "save_freq": rng.choice([50, 100, 200]),
    }


def length(settings: Settings) -> int:
    return int(settings["total_iter"])


def scheduler_yaml(settings: Settings) -> str:
    kind = settings["scheduler"]
    eta_min = "1e-6" if settings["eta_as_text"] else f"!!float {settings['eta_min']:g}"
    lines = {
        "MultiStepLR": f"    milestones: {settings['milestones']}\n    gamma: 0.5\n",
        "CosineAnnealingLR": f"    T_max: {settings['T_max']}\n    eta_min: {eta_min}\n",
        "CosineAnnealingWarmRestarts": f"    T_0: {settings['T_0']}\n    eta_min: {eta_min}\n",
    }
    return f"    type: {kind}\n{lines[kind]}"


def yaml_text(settings: Settings) -> str:
    """The options file, in the order and with the comments of the original."""
    s = settings

    def flag(value: bool) -> str:
        return "true" if value else "false"

    losses = "    - type: l1loss\n      loss_weight: 1.0\n"
    if s["ssim_weight"]:
        losses += f"    - type: ssimloss\n      loss_weight: {s['ssim_weight']}\n"
    gan = optim_d = ""
    if s["gan_weight"]:
        losses += f"    - type: ganloss\n      loss_weight: {s['gan_weight']}\n"
        gan = "network_d:\n  type: patchgan\n\n"
        optim_d = f"  optim_d:\n    type: AdamW\n    lr: !!float {s['lr_d']:g}\n    betas: [0.9, 0.99]\n\n"
    dls = ""
    if s["dynamic_loss_scheduling"]:
        dls = (
            "  dynamic_loss_scheduling:\n    enabled: true\n    momentum: 0.95\n    adaptation_rate: 0.005\n"
            "    min_weight: !!float 1e-6\n    max_weight: 100.0\n    adaptation_threshold: 0.05\n"
            f"    baseline_iterations: {s['total_iter'] // 6}\n\n"
        )
    unknown = f"  {s['unknown_key']}: 1.0\n" if s["unknown_key"] else ""
    return f"""#########################################################################################
# ParagonSR2 Nano
#########################################################################################
name: {LAB_NAME}
scale: 2

use_amp: {flag(s["use_amp"])}
amp_bf16: {flag(s["amp_bf16"])}
use_channels_last: true
num_gpu: auto
manual_seed: {s["seed"]}

datasets:
  train:
    name: Scenes_Train
    type: pairedimagedataset
    dataroot_gt: datasets/scenes-{s["images"]}x{s["train_image_size"]}-seed{s["seed"]}/hr
    dataroot_lq: datasets/scenes-{s["images"]}x{s["train_image_size"]}-seed{s["seed"]}/lr_x2_bicubic_aa
    lq_size: {s["lq_size"]}
    use_hflip: true
    use_rot: true
    num_worker_per_gpu: 8
    batch_size_per_gpu: {s["batch"]}
    accum_iter: {s["accum_iter"]}

  val:
    name: Scenes_Val
    type: pairedimagedataset
    dataroot_gt: datasets/scenes-{s["val_images"]}x{s["image_size"]}-seed{s["seed"] + 1}/hr
    dataroot_lq: datasets/scenes-{s["val_images"]}x{s["image_size"]}-seed{s["seed"] + 1}/lr_x2_bicubic_aa

network_g:
  type: paragonsr2_nano
  dim: {s["dim"]}
  blocks: {s["blocks"]}

{gan}path:
  pretrain_network_g: ~
  strict_load_g: true
  resume_state: ~

train:
  ema_decay: {s["ema_decay"]}
  ema_power: {s["ema_power"]}
  grad_clip: {flag(s["grad_clip"])}
{unknown}
  optim_g:
    type: {s["optimizer"]}
    lr: !!float {s["lr"]:g}
    weight_decay: !!float {s["weight_decay"]:g}
    {"momentum: 0.9" if s["optimizer"] == "SGD" else "betas: [0.9, 0.99]"}

{optim_d}  scheduler:
{scheduler_yaml(s)}
  total_iter: {s["total_iter"]}
  warmup_iter: {s["warmup_iter"]}

{dls}  losses:
{losses}
val:
  val_enabled: true
  val_freq: {s["val_freq"]}
  save_img: false
  metrics_enabled: true
  metrics:
    psnr:
      type: calculate_psnr
      crop_border: 4
    ssim:
      type: calculate_ssim
      crop_border: 4

logger:
  print_freq: {s["print_freq"]}
  save_checkpoint_freq: {s["save_freq"]}
  save_checkpoint_format: safetensors
  use_tb_logger: true
"""


def launch(module: ModuleType, settings: Settings, folder: Path) -> Any:
    path = folder / "options" / "train" / f"{LAB_NAME}.yml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml_text(settings), encoding="utf-8")
    return module.main(["-opt", f"options/train/{LAB_NAME}.yml", "--auto_resume"])


def score(weights: Any, settings: Settings) -> float:
    import torch

    from wheeltapper.lab.systems.sr_nano.data import degrade, make_scenes, psnr

    gt = make_scenes(settings["val_images"], settings["image_size"], seed=settings["seed"] + 1)
    weights.eval()
    device = next(weights.parameters()).device
    with torch.no_grad():
        sr = torch.cat([weights(part.to(device)).float().cpu() for part in degrade(gt, 2).split(8)])
    return psnr(sr, gt)


def logged(folder: Path, pattern: str) -> list[str]:
    """All that the logs of this run say, in order of launch."""
    found: list[str] = []
    for log in sorted(folder.glob("experiments/*/train_*.log")):
        found += re.findall(pattern, log.read_text(encoding="utf-8"))
    return found


def reported(folder: Path) -> float | None:
    values = logged(folder, r"# psnr +: +(-?[\d.]+|nan|inf)")
    return float(values[-1]) if values else None


def last_position(folder: Path) -> float:
    values = logged(folder, r"iter: +([\d,]+), lr")
    return float(values[-1].replace(",", "")) if values else 0.0


def memory(folder: Path) -> float:
    """How much the printed memory grew after the first fifth of the run, in MiB."""
    values = [float(value) for value in logged(folder, r"peak VRAM: ([\d.]+) GB")]
    return 1024 * (values[-1] - values[len(values) // 5]) if len(values) > 10 else 0.0
