"""A re-creation, in small, of the training script of case 000: five options are parsed, logged and never used."""

import argparse
import logging

import torch
from torch.utils.data import DataLoader

from prior import UNet, load_tiles

logger = logging.getLogger("poisson_diffusion")


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_root", type=str, required=True)
    parser.add_argument("--max_steps", type=int, default=450000)
    parser.add_argument("--batch_size", type=int, default=4)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--gradient_accumulation_steps", type=int, default=16)
    parser.add_argument("--model_channels", type=int, default=320)
    parser.add_argument("--num_blocks", type=int, default=8)
    parser.add_argument("--lr_scheduler", type=str, default="cosine")
    parser.add_argument("--warmup_steps", type=int, default=20000)
    parser.add_argument("--gradient_clip_norm", type=float, default=1.0)
    parser.add_argument("--mixed_precision", action="store_true")
    parser.add_argument("--resume_checkpoint", type=str, default=None)
    parser.add_argument("--save_frequency_steps", type=int, default=5000)
    return parser.parse_args()


def main():
    args = parse_args()
    config = {
        "batch_size": args.batch_size,
        "gradient_accumulation_steps": args.gradient_accumulation_steps,
        "learning_rate": args.learning_rate,
        "lr_scheduler": args.lr_scheduler,
        "warmup_steps": args.warmup_steps,
        "gradient_clip_norm": args.gradient_clip_norm,
        "resume_checkpoint": args.resume_checkpoint,
    }
    for key, value in config.items():
        logger.info(f"  {key}: {value}")
    logger.info(f"  Effective batch size: {args.batch_size * args.gradient_accumulation_steps}")

    device = "cuda"
    model = UNet(channels=args.model_channels, blocks=args.num_blocks).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    loader = DataLoader(load_tiles(args.data_root), batch_size=args.batch_size, shuffle=True, drop_last=True)

    step = 0
    while step < args.max_steps:
        for clean in loader:
            clean = clean.to(device)
            sigma = torch.exp(torch.randn(clean.shape[0], device=device) * 1.2 - 1.2)
            noise = torch.randn_like(clean) * sigma[:, None, None, None]
            optimizer.zero_grad()
            with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.mixed_precision):
                denoised = model(clean + noise, sigma)
                loss = ((denoised - clean) ** 2).mean()
            loss.backward()
            optimizer.step()
            step += 1
            if step % 100 == 0:
                logger.info(f"Step {step:,}: Loss = {loss.item():.6f}")
            if step % args.save_frequency_steps == 0:
                torch.save({"model_state_dict": model.state_dict(), "step": step}, f"checkpoint_step_{step:07d}.pth")
            if step >= args.max_steps:
                break


if __name__ == "__main__":
    main()
