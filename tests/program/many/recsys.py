import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

class MF(nn.Module):
    def __init__(self, users, items, k=32):
        super().__init__()
        self.u = nn.Embedding(users, k)
        self.i = nn.Embedding(items, k)
        self.bu = nn.Embedding(users, 1)
        self.bi = nn.Embedding(items, 1)

    def forward(self, u, i):
        return (self.u(u) * self.i(i)).sum(1) + self.bu(u).squeeze(1) + self.bi(i).squeeze(1)

df = pd.read_csv("ratings.csv")
df["user"] = df.userId.astype("category").cat.codes
df["item"] = df.movieId.astype("category").cat.codes
df = df.sort_values("timestamp")
cut = int(len(df) * 0.9)
train, test = df.iloc[:cut], df.iloc[cut:]
mean = train.rating.mean()

def tensors(frame):
    return TensorDataset(torch.tensor(frame.user.values).long(), torch.tensor(frame.item.values).long(), torch.tensor(frame.rating.values - mean).float())

model = MF(df.user.nunique(), df.item.nunique())
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=1e-6)
train_dl = DataLoader(tensors(train), batch_size=2048, shuffle=True)
test_dl = DataLoader(tensors(test), batch_size=8192)
for epoch in range(25):
    model.train()
    se = n = 0
    for u, i, r in train_dl:
        opt.zero_grad()
        loss = ((model(u, i) - r) ** 2).mean()
        loss.backward()
        opt.step()
        se += loss.item() * len(r)
        n += len(r)
    model.eval()
    with torch.no_grad():
        err = torch.cat([(model(u, i) - r) ** 2 for u, i, r in test_dl]).mean().sqrt()
    print(f"epoch={epoch} train_rmse={(se / n) ** 0.5:.4f} test_rmse={err:.4f}")
