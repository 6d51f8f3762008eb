"""Train a denoising prior for several domains: see run_prior_clean.sh for the call."""

from __future__ import annotations

import argparse
import copy
import logging
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wheeltapper.lab import clock
from wheeltapper.lab.systems.edm_prior.data import SIGMA_DATA, make_tiles, padded, psnr
from wheeltapper.lab.systems.edm_prior.model import EDMPrecond, UNet


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the unified prior")
    parser.add_argument("--data_root", default="data/prior_clean")
    parser.add_argument("--domains", nargs="+", default=["photography", "microscopy", "astronomy"])
    parser.add_argument("--tile_size", type=int, default=16)
    parser.add_argument("--max_files_per_domain", type=int, default=400)
    parser.add_argument("--max_steps", type=int, default=450000)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=16)
    parser.add_argument("--model_channels", type=int, default=256)
    parser.add_argument("--num_blocks", type=int, default=6)
    parser.add_argument("--mixed_precision", action="store_true")
    parser.add_argument("--warmup_steps", type=int, default=20000)
    parser.add_argument("--gradient_clip_norm", type=float, default=1.0)
    parser.add_argument("--ema_decay", type=float, default=0.999)
    parser.add_argument("--lr_scheduler", choices=["cosine", "constant"], default="cosine")
    parser.add_argument("--output_dir", default="results/prior_clean")
    parser.add_argument("--resume_checkpoint", default="")
    parser.add_argument("--val_frequency", type=int, default=5000)
    parser.add_argument("--save_frequency_steps", type=int, default=5000)
    parser.add_argument("--log_frequency", type=int, default=100)
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args(argv)


class LabFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        now = clock.now()
        stamp = f"{now:%Y-%m-%d %H:%M:%S},{now.microsecond // 1000:03d}"
        return f"{stamp} - {record.name} - {record.levelname} - {record.getMessage()}"


def make_logger() -> logging.Logger:
    Path("logs").mkdir(exist_ok=True)
    logger = logging.Logger("poisson_diffusion")  # not registered, so each launch has its own file handle
    handler = logging.FileHandler("logs/poisson_diffusion.log", encoding="utf-8")
    handler.setFormatter(LabFormatter())
    logger.addHandler(handler)
    return logger


class Trainer:
    def __init__(self, args: argparse.Namespace, logger: logging.Logger) -> None:
        self.args, self.logger = args, logger
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(args.seed)
        self.config = {
            "precision": "bf16" if args.mixed_precision else "fp32",
            "learning_rate": args.learning_rate,
            "batch_size": args.batch_size,
            "gradient_accumulation_steps": args.gradient_accumulation_steps,
            "gradient_clip_norm": args.gradient_clip_norm,
            "warmup_steps": args.warmup_steps,
            "lr_scheduler": args.lr_scheduler,
            "ema_decay": args.ema_decay,
            "max_steps": args.max_steps,
            "model_channels": args.model_channels,
            "num_blocks": args.num_blocks,
        }
        logger.info("🚀 Starting unified prior training")
        logger.info(f"Configuration: {self.config}")
        logger.info(f"  Batch size: {args.batch_size}")
        logger.info(f"  Gradient accumulation: {args.gradient_accumulation_steps}")
        logger.info(f"  Effective batch size: {args.batch_size * args.gradient_accumulation_steps}")
        self.train_set = self.load_split(args.max_files_per_domain, args.seed)
        self.val_set = self.load_split(10, args.seed + 1)
        logger.info(f"  Training tiles: {len(self.train_set[0]):,}")
        net = UNet(args.model_channels, args.num_blocks, len(args.domains))
        self.model = EDMPrecond(net, SIGMA_DATA).to(self.device)
        logger.info(f"  Model parameters: {sum(p.numel() for p in self.model.parameters()):,}")
        self.ema_model = copy.deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.learning_rate, weight_decay=0.01)
        self.step = 0
        if args.resume_checkpoint:
            self.load_checkpoint(args.resume_checkpoint)

    def load_split(self, count: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """All tiles in four channels, their masks, their domains."""
        tiles, masks, domains = [], [], []
        for index, domain in enumerate(self.args.domains):
            full, mask = padded(make_tiles(domain, count, self.args.tile_size, seed))
            tiles.append(full)
            masks.append(mask)
            domains.append(torch.eye(len(self.args.domains))[index].expand(count, -1))
        return torch.cat(tiles).to(self.device), torch.cat(masks).to(self.device), torch.cat(domains).to(self.device)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        index = torch.randint(len(self.train_set[0]), (self.args.batch_size,))
        tiles, masks, domains = (part[index] for part in self.train_set)
        return tiles, masks, domains

    def loss(
        self, model: nn.Module, clean: torch.Tensor, mask: torch.Tensor, domain: torch.Tensor, sigma: torch.Tensor
    ) -> torch.Tensor:
        """EDM's weighted denoising error, over the real channels only."""
        noisy = clean + sigma.view(-1, 1, 1, 1) * torch.randn_like(clean)
        weight = (sigma**2 + SIGMA_DATA**2) / (sigma * SIGMA_DATA) ** 2
        denoised = model(noisy, sigma, domain)
        error = ((denoised - clean) ** 2 * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) * clean[0, 0].numel())
        return (weight * error).mean()

    def learning_rate(self) -> float:
        """Linear warm-up, then a cosine to zero, in optimizer steps."""
        args = self.args
        if self.step < args.warmup_steps:
            return float(args.learning_rate * (self.step + 1) / args.warmup_steps)
        if args.lr_scheduler == "constant":
            return float(args.learning_rate)
        progress = (self.step - args.warmup_steps) / max(1, args.max_steps - args.warmup_steps)
        return float(args.learning_rate) * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))

    def train_step(self) -> float:
        """One optimizer step over all its micro-batches; gives the loss of the last one."""
        args = self.args
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate()
        self.optimizer.zero_grad()
        for _ in range(args.gradient_accumulation_steps):
            clean, mask, domain = self.batch()
            sigma = torch.exp(-1.2 + 1.2 * torch.randn(len(clean), device=self.device))
            with torch.autocast(self.device.type, torch.bfloat16, enabled=args.mixed_precision):
                loss = self.loss(self.model, clean, mask, domain, sigma)
            (loss / args.gradient_accumulation_steps).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), args.gradient_clip_norm)
        self.optimizer.step()
        self.step += 1
        decay = min(args.ema_decay, (1 + self.step) / (10 + self.step))
        with torch.no_grad():
            for average, live in zip(self.ema_model.parameters(), self.model.parameters(), strict=True):
                average.lerp_(live, 1 - decay)
        return float(loss)

    def validate(self) -> tuple[float, float, float]:
        """The loss on a fixed grid of noise levels, and the PSNR of tiles denoised from sigma 0.3."""
        clean, mask, domain = self.val_set
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            sigma = torch.exp(torch.linspace(-3.2, 0.8, len(clean), device=self.device))
            loss = self.loss(self.ema_model, clean, mask, domain, sigma[torch.randperm(len(clean))]).item()
            noisy = clean + 0.3 * torch.randn_like(clean)
            denoised = self.ema_model(noisy, torch.full((len(clean),), 0.3, device=self.device), domain)
        return loss, psnr(denoised.cpu(), clean.cpu(), mask.cpu()), psnr(noisy.cpu(), clean.cpu(), mask.cpu())

    def save_checkpoint(self, loss: float) -> None:
        folder = Path(self.args.output_dir)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"checkpoint_step_{self.step:07d}.pth"
        state: dict[str, Any] = {
            "model_state_dict": self.model.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
            "ema_model_state_dict": self.ema_model.state_dict(),
            "step": self.step,
            "config": self.config,
            "train_loss": loss,
        }
        torch.save(state, path)
        self.logger.info(f"💾 Checkpoint saved: {path}")

    def load_checkpoint(self, name: str) -> None:
        state = torch.load(name, weights_only=True)
        self.model.load_state_dict(state["model_state_dict"])
        self.ema_model.load_state_dict(state["ema_model_state_dict"])
        self.optimizer.load_state_dict(state["optimizer_state_dict"])
        self.step = state["step"]
        self.logger.info(f"📂 Resumed from {name} at step {self.step:,}")

    def fit(self) -> None:
        args, logger = self.args, self.logger
        while self.step < args.max_steps:
            clock.alive(self.step)
            loss = self.train_step()
            if self.step % args.log_frequency == 0:
                logger.info(f"Step {self.step:,}: Loss = {loss:.6f}")
            if self.step % args.val_frequency == 0:
                logger.info(f"🔍 Running validation at step {self.step:,}...")
                val_loss, val_psnr, noisy_psnr = self.validate()
                logger.info(f"   Validation Loss: {val_loss:.6f}")
                logger.info(f"   Validation PSNR: {val_psnr:.2f} dB (noisy input {noisy_psnr:.2f} dB)")
            if self.step % args.save_frequency_steps == 0:
                self.save_checkpoint(loss)
        logger.info(f"✅ Training completed at step {self.step:,}")


def main(argv: list[str] | None = None) -> nn.Module:
    """Train, and give back the averaged weights."""
    logger = make_logger()
    trainer = Trainer(parse_args(argv), logger)
    trainer.fit()
    return trainer.ema_model


if __name__ == "__main__":
    main()
