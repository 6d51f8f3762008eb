"""ResNet on ImageNet, one or several GPUs."""

import logging
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from dataset import FFCV_AVAILABLE, get_ffcv_loaders, get_pytorch_loaders
from models import ResNet50
from torch import optim
from torch.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import CosineAnnealingLR, OneCycleLR
from torch.optim.swa_utils import AveragedModel
from tqdm import tqdm


class Trainer:
    def __init__(self, config):
        self.config = config
        self.scaler = None
        self.ema_model = None
        self.start_epoch = 0
        self.global_step = 0
        self.best_accuracy = 0.0
        self.checkpoint_dir = Path(config.get("checkpoint_dir") or "checkpoints")
        self.checkpoint_dir.mkdir(exist_ok=True, parents=True)
        self.distributed = config.get("distributed", False)
        self.rank = config.get("rank", 0)
        self.world_size = config.get("world_size", 1)
        self.device = torch.device(f"cuda:{self.rank}")
        self.logger = logging.getLogger(__name__)
        if self.rank == 0:
            self.logger.info(f"Configuration: {self.config}")
        self._build_model()
        self._build_dataloaders()
        self._build_optimizer()
        self._build_scheduler()
        if config.get("amp", True):
            self.scaler = GradScaler("cuda")
        if config.get("use_ema", False) and self.rank == 0:
            self.ema_model = AveragedModel(
                self.model.module if self.distributed else self.model,
                avg_fn=lambda avg, model, num: 0.9999 * avg + 0.0001 * model,
            )
        self._resume_from_checkpoint()

    def _build_model(self):
        self.model = ResNet50(num_classes=1000).to(self.device)
        self.model = self.model.to(memory_format=torch.channels_last)
        if self.distributed:
            self.model = DDP(self.model, device_ids=[self.rank], output_device=self.rank)

    def _build_dataloaders(self):
        batch_size = self.config["batch_size"]
        num_workers = self.config.get("num_workers", 8)
        if self.distributed:
            batch_size = batch_size // self.world_size
            self.logger.info(f"Batch size per GPU: {batch_size}")
        if self.config.get("use_ffcv", False) and FFCV_AVAILABLE:
            self.train_loader, self.val_loader = get_ffcv_loaders(
                batch_size=batch_size,
                num_workers=num_workers,
                image_size=self._get_image_size(0),
                ffcv_dir=self.config.get("ffcv_dir", "/data/ffcv"),
                distributed=self.distributed,
                seed=self.config.get("seed", 42) + self.rank,
            )
        else:
            self.train_loader, self.val_loader = get_pytorch_loaders(
                batch_size=batch_size, num_workers=num_workers, distributed=self.distributed
            )
        self.logger.info(f"Train batches: {len(self.train_loader)}")

    def _build_optimizer(self):
        base_lr = self.config.get("lr", 0.1)
        self.optimizer = optim.SGD(
            self.model.parameters(),
            lr=base_lr,
            momentum=self.config.get("momentum", 0.9),
            weight_decay=self.config.get("weight_decay", 1e-4),
            nesterov=True,
        )
        self.logger.info(f"Optimizer: SGD (lr={base_lr}, momentum={self.config.get('momentum', 0.9)})")

    def _build_scheduler(self):
        epochs = self.config["epochs"]
        scheduler_type = self.config.get("scheduler", "onecycle")
        warmup_epochs = self.config.get("warmup_epochs", 5)
        if scheduler_type == "onecycle":
            total_steps = epochs * len(self.train_loader)
            max_lr = self.optimizer.param_groups[0]["lr"]
            self.scheduler = OneCycleLR(
                self.optimizer,
                max_lr=max_lr,
                total_steps=total_steps,
                pct_start=warmup_epochs / epochs if warmup_epochs > 0 else 0.25,
                div_factor=25,
                final_div_factor=10000,
                anneal_strategy="cos",
            )
            # Step once so that torch does not warn about the order of the first steps.
            self.scheduler.step()
            for param_group in self.optimizer.param_groups:
                param_group["lr"] = max_lr / 25
        elif scheduler_type == "cosine":
            self.scheduler = CosineAnnealingLR(self.optimizer, T_max=epochs * len(self.train_loader), eta_min=1e-6)
        else:
            self.scheduler = None

    def _get_image_size(self, epoch):
        if not self.config.get("progressive_resize", False):
            return 224
        if epoch < 30:
            return 160
        if epoch < 60:
            return 192
        return 224

    def train_epoch(self):
        self.model.train()
        total_loss = 0.0
        pbar = tqdm(self.train_loader) if self.rank == 0 else self.train_loader
        for batch_idx, batch in enumerate(pbar):
            images, labels = batch
            if self.scaler is not None:
                with autocast("cuda"):
                    outputs = self.model(images)
                    loss = F.cross_entropy(outputs, labels, label_smoothing=self.config.get("label_smoothing", 0.1))
                self.optimizer.zero_grad()
                self.scaler.scale(loss).backward()
                if self.config.get("gradient_clip", 0) > 0:
                    self.scaler.unscale_(self.optimizer)
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["gradient_clip"])
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                outputs = self.model(images)
                loss = F.cross_entropy(outputs, labels, label_smoothing=self.config.get("label_smoothing", 0.1))
                self.optimizer.zero_grad()
                loss.backward()
                if self.config.get("gradient_clip", 0) > 0:
                    torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["gradient_clip"])
                self.optimizer.step()
            if self.scheduler is not None:
                self.scheduler.step()
                self.global_step += 1
            if self.ema_model is not None and batch_idx % 10 == 0:
                self.ema_model.update_parameters(self.model.module if self.distributed else self.model)
            total_loss += loss.item()
        return total_loss / len(self.train_loader)

    def validate(self):
        model = self.model.module if self.distributed else self.model
        model.eval()
        correct = total = 0
        with torch.no_grad():
            for images, labels in tqdm(self.val_loader, disable=self.rank != 0):
                predicted = model(images).argmax(1)
                total += labels.size(0)
                correct += (predicted == labels).sum().item()
        return 100.0 * correct / max(1, total)

    def save_checkpoint(self, epoch, is_best=False):
        checkpoint = {
            "epoch": epoch,
            "model_state_dict": (self.model.module if self.distributed else self.model).state_dict(),
            "optimizer_state_dict": self.optimizer.state_dict(),
            "best_accuracy": self.best_accuracy,
            "config": self.config,
            "scheduler_state_dict": self.scheduler.state_dict() if self.scheduler else None,
            "scaler_state_dict": self.scaler.state_dict() if self.scaler else None,
        }
        if self.ema_model is not None:
            checkpoint["ema_state_dict"] = self.ema_model.state_dict()
        torch.save(checkpoint, self.checkpoint_dir / f"checkpoint_epoch_{epoch}.pt")
        torch.save(checkpoint, self.checkpoint_dir / "checkpoint_latest.pt")
        if is_best:
            torch.save(checkpoint, self.checkpoint_dir / "best_model.pt")

    def _resume_from_checkpoint(self):
        path = Path(self.config["resume"]) if self.config.get("resume") else None
        if path is None and self.config.get("auto_resume", True):
            latest = self.checkpoint_dir / "checkpoint_latest.pt"
            path = latest if latest.exists() else None
        if path is None:
            return
        checkpoint = torch.load(path, map_location=self.device)
        (self.model.module if self.distributed else self.model).load_state_dict(checkpoint["model_state_dict"])
        self.optimizer.load_state_dict(checkpoint["optimizer_state_dict"])
        if self.scheduler and checkpoint.get("scheduler_state_dict"):
            self.scheduler.load_state_dict(checkpoint["scheduler_state_dict"])
        if self.scaler and checkpoint.get("scaler_state_dict"):
            self.scaler.load_state_dict(checkpoint["scaler_state_dict"])
        if self.ema_model and checkpoint.get("ema_state_dict"):
            self.ema_model.load_state_dict(checkpoint["ema_state_dict"])
        self.start_epoch = checkpoint["epoch"] + 1
        self.best_accuracy = checkpoint.get("best_accuracy", 0.0)

    def train(self):
        epochs = self.config["epochs"]
        for epoch in range(self.start_epoch, epochs):
            if self.config.get("progressive_resize", False) and epoch > 0:
                new_size = self._get_image_size(epoch)
                if new_size != self._get_image_size(epoch - 1):
                    if self.rank == 0:
                        self.logger.info(f"Updating image size to {new_size} at epoch {epoch + 1}")
                    self._build_dataloaders()
            if self.distributed and hasattr(self.train_loader, "sampler"):
                self.train_loader.sampler.set_epoch(epoch)
            train_loss = self.train_epoch()
            val_acc = self.validate()
            if self.rank == 0:
                self.logger.info(f"Epoch {epoch + 1}/{epochs} | loss: {train_loss:.4f} | Val: {val_acc:.2f}%")
                is_best = val_acc > self.best_accuracy
                if is_best:
                    self.best_accuracy = val_acc
                if (epoch + 1) % self.config.get("checkpoint_interval", 5) == 0 or is_best:
                    self.save_checkpoint(epoch, is_best)
            if val_acc >= self.config.get("target_accuracy", 100):
                break


def train_distributed(rank, world_size, config):
    torch.cuda.set_device(rank)
    dist.init_process_group(backend="nccl", init_method="env://", world_size=world_size, rank=rank)
    config["distributed"] = True
    config["rank"] = rank
    config["world_size"] = world_size
    try:
        Trainer(config).train()
    finally:
        dist.destroy_process_group()


def train_single_gpu(config):
    config["distributed"] = False
    config["rank"] = 0
    config["world_size"] = 1
    Trainer(config).train()
