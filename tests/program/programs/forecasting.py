import argparse

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

p = argparse.ArgumentParser()
p.add_argument("--context", type=int, default=168)
p.add_argument("--horizon", type=int, default=24)
p.add_argument("--epochs", type=int, default=40)
p.add_argument("--lr", type=float, default=1e-3)
args = p.parse_args()


class Windows(Dataset):
    def __init__(self, series, context, horizon):
        self.series = torch.tensor(series, dtype=torch.float32)
        self.context, self.horizon = context, horizon

    def __len__(self):
        return len(self.series) - self.context - self.horizon + 1

    def __getitem__(self, i):
        x = self.series[i:i + self.context]
        y = self.series[i + self.context:i + self.context + self.horizon]
        return x, y


class Forecaster(nn.Module):
    def __init__(self, horizon, hidden=128):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(hidden, horizon)

    def forward(self, x):
        h, _ = self.rnn(x.unsqueeze(-1))
        return self.out(h[:, -1])


raw = pd.read_csv("load.csv")["mw"].to_numpy()
n = len(raw)
cut, cut2 = int(0.7 * n), int(0.85 * n)
train_raw, val_raw, test_raw = raw[:cut], raw[cut:cut2], raw[cut2:]
mu, sd = train_raw.mean(), train_raw.std()
train_dl = DataLoader(Windows((train_raw - mu) / sd, args.context, args.horizon), batch_size=64, shuffle=True)
val_dl = DataLoader(Windows((val_raw - mu) / sd, args.context, args.horizon), batch_size=256)
model = Forecaster(args.horizon)
optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="min", patience=3)
loss_fn = nn.MSELoss()
for epoch in range(args.epochs):
    model.train()
    running = 0.0
    for x, y in train_dl:
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    model.eval()
    errors = []
    with torch.no_grad():
        for x, y in val_dl:
            errors.append(loss_fn(model(x), y).item())
    val_loss = np.mean(errors)
    scheduler.step(val_loss)
    print(f"epoch {epoch} train {running / len(train_dl):.5f} val {val_loss:.5f}")
