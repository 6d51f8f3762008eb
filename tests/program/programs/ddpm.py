from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

from unet import UNet


@dataclass
class Config:
    timesteps: int = 1000
    lr: float = 2e-4
    epochs: int = 100
    batch_size: int = 128
    ema_decay: float = 0.999
    grad_clip: float = 1.0


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.model = UNet(3, 128).cuda()
        self.ema = UNet(3, 128).cuda()
        self.ema.load_state_dict(self.model.state_dict())
        self.ema.requires_grad_(False)
        self.opt = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)
        betas = torch.linspace(1e-4, 0.02, cfg.timesteps).cuda()
        self.abar = torch.cumprod(1 - betas, 0)

    def train_step(self, x):
        t = torch.randint(0, self.cfg.timesteps, (x.size(0),), device=x.device)
        noise = torch.randn_like(x)
        a = self.abar[t].view(-1, 1, 1, 1)
        xt = a.sqrt() * x + (1 - a).sqrt() * noise
        loss = F.mse_loss(self.model(xt, t), noise)
        self.opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.grad_clip)
        self.opt.step()
        self.update_ema()
        return loss.item()

    @torch.no_grad()
    def update_ema(self):
        d = self.cfg.ema_decay
        for e, p in zip(self.ema.parameters(), self.model.parameters()):
            e.mul_(d).add_(p, alpha=1 - d)

    def fit(self, loader):
        for epoch in range(self.cfg.epochs):
            total = 0.0
            for x, _ in loader:
                total += self.train_step(x.cuda())
            print(f"epoch {epoch} loss {total / len(loader):.5f}")
            torch.save(self.ema.state_dict(), "ema.pt")


if __name__ == "__main__":
    cfg = Config()
    tf = transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor(), transforms.Normalize((0.5,) * 3, (0.5,) * 3)])
    Trainer(cfg).fit(DataLoader(datasets.CIFAR10("data", transform=tf), batch_size=cfg.batch_size, shuffle=True))
