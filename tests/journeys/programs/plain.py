"""A classifier of points, in a loop of its own."""
import argparse
import csv

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=3e-3)
parser.add_argument("--epochs", type=int, default=20)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--weight-decay", type=float, default=1e-4)
parser.add_argument("--train-size", type=int, default=3000)
parser.add_argument("--seed", type=int, default=0)
args = parser.parse_args()

torch.manual_seed(args.seed)
centres = 1.2 * torch.randn(30, 16, generator=torch.Generator().manual_seed(7))


def points(n):
    at = torch.randint(30, (n,))
    x = centres[at] + torch.randn(n, 16)
    y = at % 10
    return x, y


x_train, y_train = points(args.train_size)
x_val, y_val = points(1000)
train = DataLoader(TensorDataset(x_train, y_train), batch_size=args.batch_size, shuffle=True)
val = DataLoader(TensorDataset(x_val, y_val), batch_size=500)

model = nn.Sequential(
    nn.Linear(16, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
)
optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs * len(train))
criterion = nn.CrossEntropyLoss()


def evaluate():
    model.eval()
    loss = right = 0
    with torch.no_grad():
        for x, y in val:
            out = model(x)
            loss += criterion(out, y).item() * len(y)
            right += (out.argmax(1) == y).sum().item()
    return loss / len(x_val), right / len(x_val)


with open("metrics.csv", "w", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(["epoch", "step", "train_loss", "lr", "val_loss", "val_accuracy"])
    step = 0
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for x, y in train:
            loss = criterion(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            optimizer.step()
            scheduler.step()
            step += 1
            total += loss.item()
        val_loss, accuracy = evaluate()
        rate = optimizer.param_groups[0]["lr"]
        writer.writerow([epoch, step, total / len(train), rate, val_loss, accuracy])
        file.flush()
        print(f"epoch {epoch} step {step} train_loss {total / len(train):.4f} lr {rate:.6f} val_loss {val_loss:.4f} val_accuracy {accuracy:.4f}", flush=True)
        torch.save(model.state_dict(), "last.pt")
