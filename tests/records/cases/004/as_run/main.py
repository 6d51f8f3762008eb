"""Command line of the ImageNet training."""

import argparse
import logging

import torch
import torch.multiprocessing as mp
from train import train_distributed, train_single_gpu


def parse_arguments():
    parser = argparse.ArgumentParser(description="ResNet-50 ImageNet training")
    parser.add_argument("mode", choices=["train", "distributed"])
    parser.add_argument("--ffcv-dir", type=str, default="/data/ffcv")
    parser.add_argument("--use-ffcv", action="store_true")
    parser.add_argument("--batch-size", type=int, default=256, help="Total batch size")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.8)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--scheduler", choices=["onecycle", "cosine", "none"], default="onecycle")
    parser.add_argument("--warmup-epochs", type=int, default=5)
    parser.add_argument("--progressive-resize", action="store_true")
    parser.add_argument("--amp", action="store_true", default=True)
    parser.add_argument("--use-ema", action="store_true")
    parser.add_argument("--gradient-clip", type=float, default=1.0)
    parser.add_argument("--world-size", type=int, default=-1)
    parser.add_argument("--num-workers", type=int, default=8, help="Number of data loading workers per GPU")
    parser.add_argument("--resume", type=str, default=None)
    parser.add_argument("--auto-resume", action="store_true", default=True)
    parser.add_argument("--no-auto-resume", dest="auto_resume", action="store_false")
    parser.add_argument("--checkpoint-interval", type=int, default=5)
    parser.add_argument("--checkpoint-dir", type=str, default="checkpoints")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--target-accuracy", type=float, default=78.0)
    parser.add_argument("--budget-hours", type=float, default=None)
    return parser.parse_args()


def prepare_config(args):
    return {
        "ffcv_dir": args.ffcv_dir,
        "use_ffcv": args.use_ffcv,
        "batch_size": args.batch_size,
        "epochs": args.epochs,
        "lr": args.lr,
        "momentum": args.momentum,
        "weight_decay": args.weight_decay,
        "label_smoothing": args.label_smoothing,
        "scheduler": args.scheduler,
        "warmup_epochs": args.warmup_epochs,
        "progressive_resize": args.progressive_resize,
        "amp": args.amp,
        "use_ema": args.use_ema,
        "gradient_clip": args.gradient_clip,
        "num_workers": args.num_workers,
        "resume": args.resume,
        "auto_resume": args.auto_resume,
        "checkpoint_interval": args.checkpoint_interval,
        "checkpoint_dir": args.checkpoint_dir,
        "seed": args.seed,
        "target_accuracy": args.target_accuracy,
        "budget_hours": args.budget_hours,
    }


def mode_train(args, logger):
    logger.info("Starting single GPU training...")
    train_single_gpu(prepare_config(args))


def mode_distributed(args, logger):
    if args.world_size == -1:
        args.world_size = torch.cuda.device_count()
    logger.info(f"Using {args.world_size} GPUs for distributed training")
    config = prepare_config(args)
    mp.spawn(train_distributed, args=(args.world_size, config), nprocs=args.world_size, join=True)


def main():
    args = parse_arguments()
    logger = logging.getLogger("main")
    logger.info(f"Mode: {args.mode}")
    torch.manual_seed(args.seed)
    if args.mode == "train":
        mode_train(args, logger)
    elif args.mode == "distributed":
        mode_distributed(args, logger)


if __name__ == "__main__":
    mp.set_start_method("spawn", force=True)
    main()
