"""Train a diffusion prior on clean tiles of several domains."""

import argparse
import copy
import logging
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from edm_wrapper import create_edm_wrapper
from tiles import CleanTiles
from torch.utils.data import DataLoader

logger = logging.getLogger("prior")


class TrainingManager:
    def __init__(self, data_root, output_dir, device="auto", seed=42):
        self.data_root = Path(data_root)
        self.output_dir = Path(output_dir)
        self.output_dir.mkdir(parents=True, exist_ok=True)
        self.device = torch.device("cuda" if device == "auto" and torch.cuda.is_available() else "cpu")
        torch.manual_seed(seed)
        logger.info(f"  Seed: {seed}")

    def create_optimized_config(self, mixed_precision=True, **config_kwargs):
        config = {
            "max_steps": config_kwargs.get("max_steps", 450000),
            "batch_size": config_kwargs.get("batch_size", 32),
            "gradient_accumulation_steps": config_kwargs.get("gradient_accumulation_steps", 2),
            "learning_rate": config_kwargs.get("learning_rate", 1e-4),
            "model_channels": config_kwargs.get("model_channels", 320),
            "num_blocks": config_kwargs.get("num_blocks", 8),
            "mixed_precision": mixed_precision,
            "precision": "bf16" if mixed_precision else "fp32",
            "gradient_clip_norm": config_kwargs.get("gradient_clip_norm", 1.0),
            "warmup_steps": config_kwargs.get("warmup_steps", 20000),
            "lr_scheduler": config_kwargs.get("lr_scheduler", "cosine"),
            "val_frequency": config_kwargs.get("val_frequency", 5000),
            "save_frequency_steps": config_kwargs.get("save_frequency_steps", 5000),
            "num_workers": config_kwargs.get("num_workers", 8),
            "ema_decay": config_kwargs.get("ema_decay", 0.999),
        }
        logger.info("Configuration:")
        logger.info(
            f"  Batch size: {config['batch_size']} "
            f"(effective: {config['batch_size'] * config['gradient_accumulation_steps']})"
        )
        logger.info(f"  Precision: {config['precision']}")
        config.update(config_kwargs)
        return config

    def validate_model(self, model, loader):
        model.eval()
        total = 0.0
        with torch.no_grad():
            for batch in loader:
                clean = batch["clean"].to(self.device)
                sigma = torch.full((clean.shape[0],), 0.5, device=self.device)
                noisy = clean + 0.5 * torch.randn_like(clean)
                total += F.mse_loss(model(noisy, sigma), clean).item()
        model.train()
        return total / max(1, len(loader))

    def save_checkpoint(self, model, optimizer, scheduler, step, config, loss=None, is_best=False, ema_model=None):
        checkpoint_info = {
            "model_state_dict": model.state_dict(),
            "optimizer_state_dict": optimizer.state_dict(),
            "scheduler_state_dict": scheduler.state_dict(),
            "step": step,
            "config": config,
        }
        if ema_model is not None:
            checkpoint_info["ema_model_state_dict"] = ema_model.state_dict()
        if loss is not None:
            checkpoint_info["train_loss"] = loss
        path = self.output_dir / f"checkpoint_step_{step:07d}.pth"
        torch.save(checkpoint_info, path)
        logger.info(f"Checkpoint saved: {path}")
        if is_best:
            torch.save(checkpoint_info, self.output_dir / "best_model.pth")


def main():
    parser = argparse.ArgumentParser(description="Train a prior on clean tiles")
    parser.add_argument("--data_root", type=str, required=True)
    parser.add_argument("--max_steps", type=int, default=None, help="Maximum training steps")
    parser.add_argument("--batch_size", type=int, default=None, help="Training batch size")
    parser.add_argument("--learning_rate", type=float, default=None, help="Learning rate")
    parser.add_argument("--gradient_accumulation_steps", type=int, default=None, help="Gradient accumulation")
    parser.add_argument("--model_channels", type=int, default=None)
    parser.add_argument("--num_blocks", type=int, default=None)
    parser.add_argument("--mixed_precision", action="store_true", default=True)
    parser.add_argument("--output_dir", type=str, default="results/prior")
    parser.add_argument("--resume_checkpoint", type=str, default=None)
    parser.add_argument("--device", type=str, default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--num_workers", type=int, default=None)
    parser.add_argument("--quick_test", action="store_true")
    parser.add_argument("--val_frequency", type=int, default=5000)
    parser.add_argument("--save_frequency_steps", type=int, default=5000)
    args = parser.parse_args()

    if args.quick_test:
        args.max_steps = 1000
        args.batch_size = 8
        logger.info("Quick test mode enabled")

    manager = TrainingManager(args.data_root, args.output_dir, device=args.device, seed=args.seed)
    config_kwargs = {k: v for k, v in vars(args).items() if v is not None and k not in ["mixed_precision"]}
    config = manager.create_optimized_config(mixed_precision=args.mixed_precision, **config_kwargs)

    model = create_edm_wrapper(config["model_channels"], config["num_blocks"]).to(manager.device)
    train_loader = DataLoader(
        CleanTiles(manager.data_root / "train"),
        batch_size=config["batch_size"],
        shuffle=True,
        num_workers=config["num_workers"],
        drop_last=True,
    )
    val_loader = DataLoader(CleanTiles(manager.data_root / "val"), batch_size=config["batch_size"])

    logger.info(f"  Effective batch size: {config['batch_size'] * config['gradient_accumulation_steps']}")
    logger.info(f"  Steps per epoch: {len(train_loader) // config['gradient_accumulation_steps']:,}")

    optimizer = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"], weight_decay=1e-3)
    ema_model = None
    ema_decay = config.get("ema_decay", 0.999)
    if ema_decay > 0:
        ema_model = copy.deepcopy(model).eval()
        logger.info(f"EMA model created with decay: {ema_decay}")
    scaler = torch.cuda.amp.GradScaler() if config["mixed_precision"] else None
    accum = config["gradient_accumulation_steps"]
    warmup, total = config["warmup_steps"], config["max_steps"]
    if config["lr_scheduler"] == "cosine":
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda s: min(1.0, (s + 1) / warmup) * 0.5 * (1 + math.cos(math.pi * min(1.0, s / total))),
        )
    else:
        scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / warmup))

    best_val_loss = float("inf")
    step = micro = 0
    if args.resume_checkpoint:
        state = torch.load(args.resume_checkpoint, map_location=manager.device)
        model.load_state_dict(state["model_state_dict"])
        optimizer.load_state_dict(state["optimizer_state_dict"])
        scheduler.load_state_dict(state["scheduler_state_dict"])
        step = state["step"]
        if ema_model is not None:
            ema_model.load_state_dict(state["ema_model_state_dict"])
    optimizer.zero_grad()
    model.train()
    while step < config["max_steps"]:
        for batch in train_loader:
            if step >= config["max_steps"]:
                break
            clean = batch["clean"].to(manager.device)
            dtype = torch.bfloat16 if config.get("precision") == "bf16" else torch.float16
            with torch.amp.autocast("cuda", enabled=config["mixed_precision"], dtype=dtype):
                noise = torch.randn_like(clean)
                sigma = torch.exp(torch.randn(clean.shape[0], device=manager.device) * 1.2 - 1.2).view(-1, 1, 1, 1)
                noisy = clean + sigma * noise
                predicted = model(noisy, sigma.squeeze())
                weight = (sigma**2 + 0.25) / (sigma * 0.5) ** 2
                loss = (weight * (predicted - clean) ** 2).mean() / accum
            micro += 1
            if scaler is not None:
                scaler.scale(loss).backward()
            else:
                loss.backward()
            if micro % accum != 0:
                continue
            if scaler is not None:
                scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), config["gradient_clip_norm"])
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
            if ema_model is not None:
                with torch.no_grad():
                    for ema_param, param in zip(ema_model.parameters(), model.parameters(), strict=True):
                        ema_param.data.mul_(ema_decay).add_(param.data, alpha=1 - ema_decay)
            if step % 100 == 0:
                logger.info(f"Step {step:,}: Loss = {loss.item() * accum:.6f}")
            if step % config["val_frequency"] == 0 and step > 0:
                val_loss = manager.validate_model(model, val_loader)
                logger.info(f"   Validation Loss: {val_loss:.6f}")
                if val_loss < best_val_loss:
                    best_val_loss = val_loss
                    manager.save_checkpoint(model, optimizer, scheduler, step, config, is_best=True, ema_model=ema_model)
            if step % config["save_frequency_steps"] == 0 and step > 0:
                manager.save_checkpoint(model, optimizer, scheduler, step, config, loss.item(), ema_model=ema_model)
            step += 1
    logger.info("Training completed!")


if __name__ == "__main__":
    main()
