import numpy as np
import pandas as pd
import torch
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CFG = {"lr": 1e-3, "batch_size": 256, "epochs": 80, "hidden": 128, "dropout": 0.1, "weight_decay": 1e-5}
df = pd.read_csv("houses.csv")
features = df.drop(columns=["price"])
X, y = features.to_numpy(dtype=np.float32), df["price"].to_numpy(dtype=np.float32)
X_train, X_val, y_train, y_val = train_test_split(X, y, test_size=0.2, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_val = scaler.transform(X_train), scaler.transform(X_val)
y_mean, y_std = y_train.mean(), y_train.std()
y_train, y_val = (y_train - y_mean) / y_std, (y_val - y_mean) / y_std
train_dl = DataLoader(TensorDataset(torch.tensor(X_train), torch.tensor(y_train)), batch_size=CFG["batch_size"], shuffle=True)
val_dl = DataLoader(TensorDataset(torch.tensor(X_val), torch.tensor(y_val)), batch_size=1024)
net = nn.Sequential(nn.Linear(X.shape[1], CFG["hidden"]), nn.ReLU(), nn.Dropout(CFG["dropout"]),
                    nn.Linear(CFG["hidden"], CFG["hidden"]), nn.ReLU(), nn.Linear(CFG["hidden"], 1))
opt = torch.optim.AdamW(net.parameters(), lr=CFG["lr"], weight_decay=CFG["weight_decay"])
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=CFG["epochs"])
best = float("inf")
for epoch in range(CFG["epochs"]):
    net.train()
    losses = []
    for xb, yb in train_dl:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(xb).squeeze(1), yb)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    sched.step()
    net.eval()
    with torch.no_grad():
        val = np.mean([nn.functional.mse_loss(net(xb).squeeze(1), yb).item() for xb, yb in val_dl])
    if val < best:
        best = val
        torch.save(net.state_dict(), "best.pt")
    print(f"epoch {epoch:3d} train_loss {np.mean(losses):.4f} val_loss {val:.4f}")
