"""A re-creation, in small, of the training loop of case 004, with the defects that its write-up calls harmless."""

import torch
from torch.amp import GradScaler, autocast
from torch.optim.swa_utils import AveragedModel

from data import build_loader, resnet50


class Trainer:
    def __init__(self, config, rank):
        self.config = config
        self.rank = rank
        self.model = resnet50(num_classes=1000).cuda(rank)
        self.train_loader = self._build_dataloaders()
        self.val_loader = build_loader("val", 2048, 224, config["num_workers"], seed=42)
        self.optimizer = torch.optim.SGD(
            self.model.parameters(), lr=config["lr"], momentum=config["momentum"], weight_decay=config["weight_decay"]
        )
        self.scheduler = torch.optim.lr_scheduler.OneCycleLR(
            self.optimizer,
            max_lr=config["lr"],
            epochs=config["epochs"],
            steps_per_epoch=len(self.train_loader),
            pct_start=config["warmup_epochs"] / config["epochs"],
        )
        self.scheduler.step()  # pre-step to avoid the PyTorch warning
        self.scaler = GradScaler("cuda", enabled=config["amp"])
        self.criterion = torch.nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
        self.ema_model = None
        if config["use_ema"]:
            self.ema_model = AveragedModel(self.model, avg_fn=lambda avg, new, n: 0.9999 * avg + 0.0001 * new)

    def _get_image_size(self, epoch):
        if not self.config["progressive_resize"]:
            return 224
        return 160 if epoch < 20 else 192 if epoch < 40 else 224

    def _build_dataloaders(self):
        size = self._get_image_size(0)
        batch = self.config["batch_size"] // self.config["world_size"]
        return build_loader("train", batch, size, self.config["num_workers"], seed=42 + self.rank)

    def train_epoch(self, epoch):
        self.model.train()
        for batch_idx, (images, labels) in enumerate(self.train_loader):
            self.optimizer.zero_grad()
            with autocast("cuda", enabled=self.config["amp"]):
                loss = self.criterion(self.model(images), labels)
            self.scaler.scale(loss).backward()
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config["gradient_clip"])
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.scheduler.step()
            if self.rank == 0 and self.ema_model is not None and batch_idx % 10 == 0:
                self.ema_model.update_parameters(self.model)

    @torch.no_grad()
    def validate(self):
        model = self.ema_model if self.ema_model is not None else self.model
        model.eval()
        correct = total = 0
        for images, labels in self.val_loader:
            correct += (model(images).argmax(1) == labels).sum().item()
            total += labels.numel()
        return 100.0 * correct / total

    def train(self):
        for epoch in range(self.config["epochs"]):
            self.train_epoch(epoch)
            accuracy = self.validate()
            print(f"Epoch {epoch + 1}/{self.config['epochs']} | Val: {accuracy:.2f}%")
