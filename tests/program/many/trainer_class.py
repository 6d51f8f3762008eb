import json
from dataclasses import dataclass
from pathlib import Path
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, Dataset, Subset

@dataclass
class Config:
    lr: float = 3e-4
    epochs: int = 30
    batch: int = 64
    clip: float = 1.0
    accum: int = 4
    patience: int = 5
    out: str = "runs/tab"

class Table(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

class Block(nn.Module):
    def __init__(self, dim, depth=4):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(depth)])
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.relu(layer(self.norm(x)))
        return x

class Regressor(nn.Module):
    def __init__(self, features, dim=128):
        super().__init__()
        self.inp = nn.Linear(features, dim)
        self.body = Block(dim)
        self.out = nn.Linear(dim, 1)

    def forward(self, x):
        return self.out(self.body(self.inp(x))).squeeze(-1)

class Trainer:
    def __init__(self, cfg, model, train, val):
        self.cfg, self.model = cfg, model
        self.train_loader = DataLoader(train, batch_size=cfg.batch, shuffle=True)
        self.val_loader = DataLoader(val, batch_size=cfg.batch)
        self.opt = optim.AdamW(model.parameters(), lr=cfg.lr)
        self.criterion = nn.MSELoss()
        self.best = float("inf")
        self.bad = 0

    def train_epoch(self):
        self.model.train()
        total = 0.0
        self.opt.zero_grad()
        for i, (x, y) in enumerate(self.train_loader):
            loss = self.criterion(self.model(x), y) / self.cfg.accum
            loss.backward()
            if (i + 1) % self.cfg.accum == 0:
                nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg.clip)
                self.opt.step()
                self.opt.zero_grad()
            total += loss.item() * self.cfg.accum
        return total / len(self.train_loader)

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total = 0.0
        for x, y in self.val_loader:
            total += self.criterion(self.model(x), y).item()
        return total / len(self.val_loader)

    def fit(self):
        for epoch in range(self.cfg.epochs):
            tr = self.train_epoch()
            va = self.validate()
            print(json.dumps({"epoch": epoch, "train_loss": tr, "val_loss": va}))
            if va < self.best:
                self.best, self.bad = va, 0
                torch.save(self.model.state_dict(), Path(self.cfg.out) / "best.pt")
            else:
                self.bad += 1
                if self.bad >= self.cfg.patience:
                    break

def load(cfg):
    raw = torch.load("data/table.pt")
    x, y = raw["x"].float(), raw["y"].float()
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    cut = int(0.8 * len(x))
    tr, va = order[:cut], order[cut:]
    mean, std = x[tr].mean(0), x[tr].std(0)
    x = (x - mean) / (std + 1e-8)
    return Table(x[tr], y[tr]), Table(x[va], y[va])

if __name__ == "__main__":
    cfg = Config()
    train, val = load(cfg)
    Trainer(cfg, Regressor(train.x.shape[1]), train, val).fit()
