import numpy as np
import pandas as pd
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

WINDOW, HORIZON = 48, 1

class Windows(Dataset):
    def __init__(self, series):
        self.s = torch.tensor(series, dtype=torch.float32)

    def __len__(self):
        return len(self.s) - WINDOW - HORIZON + 1

    def __getitem__(self, i):
        x = self.s[i : i + WINDOW]
        y = self.s[i + WINDOW + HORIZON - 1]
        return x.unsqueeze(-1), y

class LSTMForecaster(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, batch_first=True)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, x):
        out, _ = self.lstm(x)
        return self.fc(out[:, -1]).squeeze(-1)

values = pd.read_csv("load.csv")["mw"].to_numpy()
cut = int(0.8 * len(values))
mean, std = values[:cut].mean(), values[:cut].std()
values = (values - mean) / std
train_loader = DataLoader(Windows(values[:cut]), batch_size=64, shuffle=True)
val_loader = DataLoader(Windows(values[cut:]), batch_size=256)
model = LSTMForecaster()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(30):
    model.train()
    tl = []
    for x, y in train_loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        tl.append(loss.item())
    model.eval()
    with torch.no_grad():
        vl = [loss_fn(model(x), y).item() for x, y in val_loader]
    print(f"epoch {epoch} train_mse {np.mean(tl):.5f} val_mse {np.mean(vl):.5f}")
