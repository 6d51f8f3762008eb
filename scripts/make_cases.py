"""Write examples/cases/: the five cases as small run folders of our own, in the originals' log formats.

    python scripts/make_cases.py

Numbers that the write-ups quote stand in the logs as they were quoted; the lines between are drawn with a fixed seed
from what the original code would have printed (a lognormal single-batch loss, a loss scale that doubles every 2000
clean steps, OneCycleLR's own rates). Scripts and configs in the folders are kept by hand.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

CASES = Path(__file__).resolve().parents[1] / "examples" / "cases"


def edm_prior() -> None:
    """Case 000: one single-batch loss a line, n = 4, lognormal sigma; 0.06 at 25k and 6.74 at 90k are quoted."""
    rng = np.random.default_rng(0)
    quoted = {25_000: 0.061234, 90_000: 6.740112}
    lines = ["2025-09-23 09:00:00,000 - poisson_diffusion - INFO -   Effective batch size: 64"]
    for step in range(500, 90_001, 500):
        quality = 0.16 + 5.0 * math.exp(-step / 3000)  # a model that stops improving after some 15k steps
        sigma2 = np.exp(2 * (1.2 * rng.standard_normal(4) - 1.2)).mean()
        loss = quoted.get(step, quality * float(sigma2) * float(rng.chisquare(40)) / 40)
        stamp = f"2025-09-{23 + step // 30_000} {9 + step // 5000 % 14:02d}:{step // 100 % 60:02d}:15,123"
        lines.append(f"{stamp} - poisson_diffusion - INFO - Step {step:,}: Loss = {loss:.6f}")
        if step % 5000 == 0:
            name = f"results/prior_clean/checkpoint_step_{step:07d}.pth"
            lines.append(f"{stamp} - poisson_diffusion - INFO - 💾 Checkpoint saved: {name}")
    _write("000-edm-prior/logs/poisson_diffusion.log", lines)


def sr_nano() -> None:
    """Cases 001 and 002: PSNR 11.5119 at 1,000 and 11.0022 at 40,000; scale_g 2.0972e+06 at the end."""
    rng = np.random.default_rng(1)
    lines = ["2025-11-29 14:10:01,101 INFO: Using Automatic Mixed Precision (AMP) with fp32 and fp16."]
    best = (0.0, 0.0)
    for it in range(500, 40_001, 500):
        rate = 2e-4 * min(1.0, it / 500) * 0.998 * 0.5 ** ((it >= 20_000) + (it >= 30_000))
        l1 = 0.018 + 0.03 * math.exp(-it / 1500) + 0.0006 * rng.standard_normal()
        ssim = 3.0e-4 + 9e-4 * math.exp(-it / 2000) + 1e-5 * rng.standard_normal()
        scale = 2.0 ** min(16 + it // 2000, 21)
        stamp = f"2025-11-29 {14 + it // 12_000:02d}:{10 + it // 250 % 48:02d}:11,123"
        lines.append(
            f"{stamp} INFO: [epoch: {it // 9188:3d}, iter: {it:7,d}, lr:({rate:.3e})] [performance: 26.100 it/s] [eta: 0:24:55] "
            f"[peak VRAM: 1.71 GB] l_g_l1: {l1:.4e} l_g_ssim: {ssim:.4e} l_g_total: {l1 + ssim:.4e} "
            f"dynamic_weight_l_g_l1: {1 + 3e-4 * rng.standard_normal():.4e} grad_norm_g: {0.2 + 0.03 * rng.standard_normal():.4e} "
            f"scale_g: {scale:.4e}"
        )
        if it % 1000 == 0:
            share = (it - 1000) / 39_000
            psnr = 11.5119 + share * (11.0022 - 11.5119) + (0.02 * rng.standard_normal() if 0 < share < 1 else 0.0)
            struct = 0.4685 + share * (0.3499 - 0.4685) + (0.004 * rng.standard_normal() if 0 < share < 1 else 0.0)
            psnr, struct = min(psnr, 11.5119), min(struct, 0.4685)
            best = (max(best[0], psnr), max(best[1], struct))
            lines += [
                f"{stamp} INFO: Validation CC0_147k_Val",
                f"\t # psnr : {psnr:7.4f}\tBest: {best[0]:7.4f} @ {1000:9,d} iter",
                f"\t # ssim : {struct:7.4f}\tBest: {best[1]:7.4f} @ {1000:9,d} iter",
            ]
        if it % 20_000 == 0:
            lines.append(f"{stamp} INFO: Saving models and training states to experiments/2xParagonSR2_Nano_CC0_147k. Free space: 512 GB")
    lines.append("2025-11-29 17:40:00,000 INFO: End of training. Time consumed: 0:25:33")
    _write("001-sr-degradation/train_2xParagonSR2_Nano_CC0_147k_20251129_141001.log", lines)


def sedd() -> None:
    """Case 003: the loss table of the write-up, at its steps, as the trainer's bar would have shown it."""
    table = {1: 0.2584, 500: 0.7816, 1000: 1.1741, 2500: 2.0618, 5000: 2.3268}
    rng = np.random.default_rng(3)
    at = sorted({*table, *range(250, 5001, 250)})
    steps, values = list(table), list(table.values())
    lines = ["🚀 Starting training: 9500 sequences, 296 steps per epoch, 50 epochs"]
    for step in at:
        loss = table.get(step, float(np.interp(step, steps, values)) * float(1 + 0.05 * rng.standard_normal()))
        rate = 1e-4 * min(1.0, step / 4 / 5000)
        epoch = step // 296 + 1
        done = step % 296
        bar = f"{100 * done // 296:3d}%|{'█' * (done // 30):10s}| {done}/296 [00:10<01:12,  3.60it/s"
        lines.append(f"Epoch {epoch}/50: {bar}, loss={loss:.4f}, lr={rate:.2e}, step={step}/500000, gpu_mem=N/A]")
    _write("003-sedd-curriculum/train.log", lines)


def imagenet() -> None:
    """Case 004: ten epochs validated with a stale average (0.10 %), rates of OneCycleLR one step ahead."""
    rng = np.random.default_rng(4)
    total, up = 60 * 625, 8 * 625
    lines = [
        "[2025-10-25 18:00:00][INFO] Configuration: {'dataset': 'full', 'use_ffcv': True, 'batch_size': 2048, 'epochs': 60, "
        "'lr': 0.8, 'momentum': 0.9, 'weight_decay': 0.0001, 'label_smoothing': 0.1, 'scheduler': 'onecycle', 'warmup_epochs': 8, "
        "'progressive_resize': True, 'amp': True, 'use_ema': True, 'gradient_clip': 1.0, 'num_workers': 24, 'world_size': 8}",
        "[2025-10-25 18:00:05][INFO] Train batches: 625",
        "[2025-10-25 18:00:05][INFO]   - max_lr: 0.8",
        "[2025-10-25 18:00:06][WARNING] UserWarning: Detected call of `lr_scheduler.step()` before `optimizer.step()`.",
    ]
    progress = []
    accuracy = [1.9, 9.6, 17.8, 24.6, 29.9, 33.6, 36.7, 39.2, 41.1, 42.54]
    for epoch in range(1, 11):
        step = 625 * epoch + 1
        if step <= up - 1:
            rate = 0.032 + 0.768 * (1 - math.cos(math.pi * step / (up - 1))) / 2
        else:
            rate = 3.2e-6 + (0.8 - 3.2e-6) * (1 + math.cos(math.pi * (step - up + 1) / (total - up))) / 2
        train = accuracy[epoch - 1]
        loss = 6.9 - 0.065 * train + 0.02 * rng.standard_normal()
        val_loss = "nan" if epoch >= 4 else f"{6.94 + 1.2 * (epoch - 1):.4f}"
        stamp = f"2025-10-25 18:{epoch * 50 // 60:02d}:{epoch * 50 % 60:02d}"
        progress.append(
            f"[{stamp}] Epoch {epoch}/60 | Train: {train:.2f}% (loss: {loss:.4f}) | Val: 0.10% (loss: {val_loss}) | "
            f"LR: {rate:.6f} | Best: {0.0 if epoch == 1 else 0.10:.2f}%"
        )
        lines += [f"[{stamp}][INFO] Train Loss: {loss:.4f} | Train Acc: {train:.2f}%", f"[{stamp}][INFO] Learning Rate: {rate:.6f}"]
    _write("004-imagenet-onecycle/logs/train.log", lines)
    _write("004-imagenet-onecycle/logs/epoch_progress.log", progress)


def _write(name: str, lines: list[str]) -> None:
    path = CASES / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    edm_prior()
    sr_nano()
    sedd()
    imagenet()
