"""ResNet training: python train.py distributed --epochs 40 --lr 0.8 --batch-size 512 --world-size 8

Under torchrun each process is one rank (gloo on CPU, nccl on GPU). Without it, --world-size N is played
by one process that draws the N shards in turn: the same pictures in the same batches, the mean gradient.
"""

from __future__ import annotations

import argparse
import math
import os
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from wheeltapper.lab import clock
from wheeltapper.lab.precision import grads_through_half, half_hooks, scaler_for
from wheeltapper.lab.systems.resnet_ddp.data import augment, make_pictures, normalise, resize
from wheeltapper.lab.systems.resnet_ddp.model import DEPTHS, ResNet


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a ResNet")
    parser.add_argument("mode", choices=["train", "distributed"])
    parser.add_argument("--model", choices=sorted(DEPTHS), default="resnet50")
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--num-classes", type=int, default=20)
    parser.add_argument("--image-size", type=int, default=20)
    parser.add_argument("--max-samples", type=int, default=20000)
    parser.add_argument("--val-samples", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=256, help="total batch size")
    parser.add_argument("--accumulation-steps", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.8)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--scheduler", choices=["onecycle", "cosine", "none"], default="onecycle")
    parser.add_argument("--warmup-epochs", type=int, default=5)
    parser.add_argument("--t-max", type=int, default=0, help="epochs of the cosine; 0: all that follow warm-up")
    parser.add_argument("--cutmix-prob", type=float, default=0.5)
    parser.add_argument("--mixup-alpha", type=float, default=0.4)
    parser.add_argument("--augment", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--progressive-resize", action="store_true")
    parser.add_argument("--amp", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--use-ema", action="store_true")
    parser.add_argument("--ema-decay", type=float, default=0.99)
    parser.add_argument("--ema-every", type=int, default=1)
    parser.add_argument("--gradient-clip", type=float, default=1.0, help="0: no clipping")
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--num-workers", type=int, default=8, help="per GPU")
    parser.add_argument("--resume", default="")
    parser.add_argument("--auto-resume", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--checkpoint-interval", type=int, default=5)
    parser.add_argument("--checkpoint-dir", default="checkpoints")
    parser.add_argument("--log-dir", default="logs")
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args(argv)


class Trainer:
    def __init__(self, args: argparse.Namespace) -> None:
        self.args = args
        self.distributed = "RANK" in os.environ
        self.rank = int(os.environ.get("RANK", "0"))
        self.world_size = int(os.environ.get("WORLD_SIZE", args.world_size))
        self.ranks = [self.rank] if self.distributed else list(range(self.world_size))
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        if self.distributed:
            if self.device.type == "cuda":
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            torch.distributed.init_process_group("nccl" if self.device.type == "cuda" else "gloo")
        Path(args.log_dir).mkdir(parents=True, exist_ok=True)
        Path(args.checkpoint_dir).mkdir(parents=True, exist_ok=True)
        torch.manual_seed(args.seed)
        self.log(f"Configuration: {vars(args)}")
        self.build_data()
        self.build_model()
        self.build_optimizer()
        self.start_epoch = 0
        self.best_accuracy = 0.0
        self.global_step = 0
        if args.resume or args.auto_resume:
            self.load_checkpoint()

    def log(self, text: str, level: str = "INFO") -> None:
        name = "train.log" if self.rank == 0 else f"train_rank{self.rank}.log"
        with Path(self.args.log_dir, name).open("a", encoding="utf-8") as file:
            file.write(f"[{clock.now():%Y-%m-%d %H:%M:%S}][{level}] {text}\n")

    def build_data(self) -> None:
        args = self.args
        self.train_set = make_pictures(args.max_samples, args.num_classes, args.image_size, seed=args.seed)
        self.val_set = make_pictures(args.val_samples, args.num_classes, args.image_size, seed=args.seed + 1)
        self.train_set, self.val_set = self.train_set.to(self.device), self.val_set.to(self.device)
        self.loader_size = self.image_size(0)
        self.micro_batch = args.batch_size // args.accumulation_steps
        self.train_batches = len(self.train_set) // self.micro_batch
        self.steps_per_epoch = self.train_batches // args.accumulation_steps
        self.log(f"Train samples: {len(self.train_set)} | Val samples: {len(self.val_set)}")
        self.log(f"Train batches: {self.train_batches}")
        self.log(f"Val batches: {math.ceil(len(self.val_set) / 100)}")

    def build_model(self) -> None:
        args = self.args
        self.net = ResNet(args.model, args.num_classes, args.width).to(self.device)
        self.log(f"Model: {args.model} | Parameters: {sum(p.numel() for p in self.net.parameters()):,}")
        if args.amp and self.device.type == "cpu":
            half_hooks(self.net, (nn.Conv2d, nn.BatchNorm2d, nn.Linear))
        self.model = DistributedDataParallel(self.net) if self.distributed else self.net
        self.ema_model = None
        if args.use_ema:
            self.ema_model = torch.optim.swa_utils.AveragedModel(
                self.net,
                avg_fn=lambda old, new, _n: args.ema_decay * old + (1 - args.ema_decay) * new,
                use_buffers=True,
            )

    def build_optimizer(self) -> None:
        args = self.args
        lr = args.lr
        parameters = [p for p in self.net.parameters() if p.requires_grad]
        self.optimizer = torch.optim.SGD(
            parameters, lr=lr, momentum=args.momentum, weight_decay=args.weight_decay, nesterov=True
        )
        self.scaler = scaler_for(self.device.type, enabled=args.amp)
        total_steps = args.epochs * self.steps_per_epoch
        warmup_steps = args.warmup_epochs * self.steps_per_epoch
        self.scheduler: Any = None
        if args.scheduler == "onecycle":
            self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
                self.optimizer,
                max_lr=lr,
                total_steps=total_steps,
                pct_start=args.warmup_epochs / args.epochs,
                anneal_strategy="cos",
                cycle_momentum=False,
            )
            self.log("OneCycleLR scheduler:")
            self.log(f"  - initial_lr: {self.optimizer.param_groups[0]['lr']}")
            self.log(f"  - max_lr: {lr}")
            self.log(f"  - total_steps: {total_steps}")
            self.log(f"  - warmup_epochs: {args.warmup_epochs}")
            self.log(f"  - pct_start: {args.warmup_epochs / args.epochs}")
        elif args.scheduler == "cosine":
            t_max = args.t_max * self.steps_per_epoch or max(1, total_steps - warmup_steps)
            cosine = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=t_max)
            if warmup_steps:
                linear = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.01, 1.0, total_iters=warmup_steps)
                self.scheduler = torch.optim.lr_scheduler.SequentialLR(
                    self.optimizer, [linear, cosine], milestones=[warmup_steps]
                )
            else:
                self.scheduler = cosine

    def load_checkpoint(self) -> None:
        latest = Path(self.args.checkpoint_dir, "checkpoint_latest.pt")
        path = Path(self.args.resume) if self.args.resume else latest
        if not path.exists():
            return
        state = torch.load(path, map_location=self.device, weights_only=True)
        self.net.load_state_dict(state["model_state_dict"])
        self.optimizer.load_state_dict(state["optimizer_state_dict"])
        if self.scheduler is not None and state["scheduler_state_dict"]:
            self.scheduler.load_state_dict(state["scheduler_state_dict"])
        self.scaler.load_state_dict(state["scaler_state_dict"])
        if self.ema_model is not None and "ema_state_dict" in state:
            self.ema_model.load_state_dict(state["ema_state_dict"])
        self.start_epoch = state["epoch"]
        self.loader_size = self.image_size(self.start_epoch)
        self.best_accuracy = state["best_accuracy"]
        self.global_step = self.start_epoch * self.steps_per_epoch
        self.log(f"Resumed from {path} at epoch {self.start_epoch}, best accuracy {self.best_accuracy:.2f}%")

    def save_checkpoint(self, epoch: int, names: list[str]) -> None:
        if self.rank:
            return
        state = {
            "epoch": epoch,
            "model_state_dict": self.net.state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
            "best_accuracy": self.best_accuracy,
            "config": vars(self.args),
            "scheduler_state_dict": self.scheduler.state_dict() if self.scheduler is not None else None,
            "scaler_state_dict": self.scaler.state_dict(),
        }
        if self.ema_model is not None:
            state["ema_state_dict"] = self.ema_model.state_dict()
        for name in names:
            torch.save(state, Path(self.args.checkpoint_dir, name))

    def image_size(self, epoch: int) -> int:
        """Progressive resize: 60 % of the full size for the first third, 80 % for the second, then full."""
        full: int = self.args.image_size
        if not self.args.progressive_resize:
            return full
        third = epoch * 3 // self.args.epochs
        return full * (3, 4, 5)[min(third, 2)] // 5

    def shard(self, epoch: int, rank: int) -> torch.Tensor:
        """One seed for all ranks, so that the shards are disjoint and together make one epoch."""
        generator = torch.Generator().manual_seed(self.args.seed * 1000 + epoch)
        order = torch.randperm(len(self.train_set), generator=generator)
        return order[rank :: self.world_size]

    def batches(self, epoch: int) -> Any:
        """The pictures and labels of each micro-batch of this process."""
        generator = torch.Generator().manual_seed(self.args.seed * 1000 + epoch + 500 * self.rank)
        shards = [self.shard(epoch, rank) for rank in self.ranks]
        local = self.micro_batch // self.world_size
        for batch_idx in range(self.train_batches):
            index = torch.cat([s[batch_idx * local : (batch_idx + 1) * local] for s in shards])
            images, labels = self.train_set.images[index], self.train_set.labels[index]
            if self.args.augment:
                images = augment(images, generator)
            yield normalise(resize(images, self.loader_size)), labels

    def mix(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, float]:
        """Mixup or CutMix: the mixed pictures, the other labels, and the share of the first ones."""
        args, share = self.args, 1.0
        other = torch.randperm(len(labels), device=labels.device)
        if torch.rand(()).item() < args.cutmix_prob:
            height, width = images.shape[-2:]
            side = math.sqrt(torch.rand(()).item())
            h, w = int(height * side), int(width * side)
            top = int(torch.randint(0, height - h + 1, ()).item())
            left = int(torch.randint(0, width - w + 1, ()).item())
            images = images.clone()
            images[:, :, top : top + h, left : left + w] = images[other, :, top : top + h, left : left + w]
            share = 1 - h * w / (height * width)
        elif args.mixup_alpha > 0:
            share = float(torch.distributions.Beta(args.mixup_alpha, args.mixup_alpha).sample())
            images = share * images + (1 - share) * images[other]
        return images, labels[other], share

    def train_epoch(self, epoch: int) -> tuple[float, float]:
        args = self.args
        self.model.train()
        loss_sum, correct, seen = 0.0, 0.0, 0
        size = self.image_size(epoch)
        if epoch and size != self.image_size(epoch - 1):
            self.log(f"Updating image size to {size} at epoch {epoch + 1}")
            self.loader_size = size
        for batch_idx, (images, labels) in enumerate(self.batches(epoch)):
            mixed, other, share = self.mix(images, labels)
            with torch.autocast(self.device.type, enabled=args.amp and self.device.type == "cuda"):
                output = self.model(mixed)
                loss = share * F.cross_entropy(output, labels, label_smoothing=args.label_smoothing)
                if share < 1:
                    loss += (1 - share) * F.cross_entropy(output, other, label_smoothing=args.label_smoothing)
            self.scaler.scale(loss / args.accumulation_steps).backward()
            loss_sum += loss.item() * len(labels)
            hit = output.argmax(1)
            correct += share * (hit == labels).sum().item() + (1 - share) * (hit == other).sum().item()
            seen += len(labels)
            if (batch_idx + 1) % args.accumulation_steps == 0:
                self.step()
        return loss_sum / seen, 100 * correct / seen

    def step(self) -> None:
        args = self.args
        if args.amp and self.device.type == "cpu":
            grads_through_half(self.net)
        if args.gradient_clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.net.parameters(), args.gradient_clip)
        scale = self.scaler.get_scale()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()
        if self.scheduler is not None and self.scaler.get_scale() >= scale:
            self.scheduler.step()
        if self.ema_model is not None and self.global_step % args.ema_every == 0:
            self.ema_model.update_parameters(self.net)
        self.global_step += 1

    def validate(self) -> tuple[float, float]:
        model = self.ema_model if self.ema_model is not None else self.net
        model.eval()
        loss_sum, correct = 0.0, 0.0
        with torch.no_grad():
            for start in range(0, len(self.val_set), 100):
                images = normalise(resize(self.val_set.images[start : start + 100], self.loader_size))
                labels = self.val_set.labels[start : start + 100]
                output = model(images).float()
                loss_sum += F.cross_entropy(output, labels, reduction="sum").item()
                correct += (output.argmax(1) == labels).sum().item()
        return loss_sum / len(self.val_set), 100 * correct / len(self.val_set)

    def fit(self) -> None:
        args = self.args
        for epoch in range(self.start_epoch, args.epochs):
            clock.alive(epoch)
            self.log(f"Epoch {epoch + 1}/{args.epochs}")
            train_loss, train_acc = self.train_epoch(epoch)
            val_loss, val_acc = self.validate()
            lr = self.optimizer.param_groups[0]["lr"]
            self.log(f"Train Loss: {train_loss:.4f} | Train Acc: {train_acc:.2f}%")
            self.log(f"Val Loss: {val_loss:.4f} | Val Acc: {val_acc:.2f}%")
            self.log(f"Learning Rate: {lr:.6f}")
            if self.rank == 0:
                with Path(args.log_dir, "epoch_progress.log").open("a", encoding="utf-8") as file:
                    file.write(
                        f"[{clock.now():%Y-%m-%d %H:%M:%S}] Epoch {epoch + 1}/{args.epochs} | "
                        f"Train: {train_acc:.2f}% (loss: {train_loss:.4f}) | "
                        f"Val: {val_acc:.2f}% (loss: {val_loss:.4f}) | LR: {lr:.6f} | "
                        f"Best: {self.best_accuracy:.2f}%\n"
                    )
            names = ["checkpoint_latest.pt"]
            if val_acc > self.best_accuracy:
                self.best_accuracy = val_acc
                names.append("best_model.pt")
                self.log(f"Saved best model with accuracy: {val_acc:.2f}%")
            if (epoch + 1) % args.checkpoint_interval == 0:
                names.append(f"checkpoint_epoch_{epoch + 1}.pt")
            self.save_checkpoint(epoch + 1, names)
        self.log(f"Training completed. Best accuracy: {self.best_accuracy:.2f}%")


def main(argv: list[str] | None = None) -> nn.Module:
    """Train, and give back the weights that validation judged."""
    trainer = Trainer(parse_args(argv))
    trainer.fit()
    if trainer.distributed:
        torch.distributed.destroy_process_group()
    return trainer.ema_model if trainer.ema_model is not None else trainer.net


if __name__ == "__main__":
    main()
