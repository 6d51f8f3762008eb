import math
import torch
import torch.nn as nn
import torch.nn.functional as F
from copy import deepcopy
from torch.utils.data import DataLoader, TensorDataset

T = 1000
betas = torch.linspace(1e-4, 0.02, T)
alphas = 1.0 - betas
alpha_bar = torch.cumprod(alphas, dim=0)

class Denoiser(nn.Module):
    def __init__(self, dim=2, hidden=256):
        super().__init__()
        self.time = nn.Embedding(T, hidden)
        self.inp = nn.Linear(dim, hidden)
        self.mid = nn.Sequential(nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU(), nn.Linear(hidden, hidden), nn.SiLU())
        self.out = nn.Linear(hidden, dim)

    def forward(self, x, t):
        return self.out(self.mid(self.inp(x) + self.time(t)))

def q_sample(x0, t, noise):
    a = alpha_bar[t].sqrt()[:, None]
    s = (1 - alpha_bar[t]).sqrt()[:, None]
    return a * x0 + s * noise

@torch.no_grad()
def update_ema(ema, model, decay=0.999):
    for e, p in zip(ema.parameters(), model.parameters()):
        e.mul_(decay).add_(p, alpha=1 - decay)

@torch.no_grad()
def sample(model, n):
    x = torch.randn(n, 2)
    for i in reversed(range(T)):
        t = torch.full((n,), i)
        eps = model(x, t)
        x = (x - betas[i] / (1 - alpha_bar[i]).sqrt() * eps) / alphas[i].sqrt()
        if i > 0:
            x = x + betas[i].sqrt() * torch.randn_like(x)
    return x

def train(steps=20000, bs=256):
    data = torch.load("moons.pt")
    loader = DataLoader(TensorDataset(data), batch_size=bs, shuffle=True, drop_last=True)
    model = Denoiser()
    ema = deepcopy(model)
    opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
    step = 0
    while step < steps:
        for (x0,) in loader:
            t = torch.randint(0, T, (x0.size(0),))
            noise = torch.randn_like(x0)
            xt = q_sample(x0, t, noise)
            loss = F.mse_loss(model(xt, t), noise)
            opt.zero_grad()
            loss.backward()
            opt.step()
            update_ema(ema, model)
            step += 1
            if step % 100 == 0:
                print(f"step {step} loss {loss.item():.4f}")
    torch.save(sample(ema, 512), "samples.pt")

if __name__ == "__main__":
    train()
