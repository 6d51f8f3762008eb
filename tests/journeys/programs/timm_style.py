"""A training script in the manner of timm: many options, args.yaml and summary.csv in the output folder."""
import argparse
import csv
import os

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="training")
parser.add_argument("--opt", default="sgd", type=str)
parser.add_argument("--lr", default=0.05, type=float)
parser.add_argument("--momentum", default=0.9, type=float)
parser.add_argument("--weight-decay", default=1e-4, type=float)
parser.add_argument("--epochs", default=15, type=int)
parser.add_argument("-b", "--batch-size", default=64, type=int)
parser.add_argument("--smoothing", default=0.1, type=float)
parser.add_argument("--clip-grad", default=None, type=float)
parser.add_argument("--seed", default=42, type=int)
parser.add_argument("--output", default="output/train", type=str)


def pictures(n, forms):
    y = torch.randint(len(forms), (n,))
    return TensorDataset(forms[y] + 3.0 * torch.randn(n, 3, 8, 8), y)


def main():
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    os.makedirs(args.output, exist_ok=True)
    with open(os.path.join(args.output, "args.yaml"), "w") as f:
        f.write(yaml.safe_dump(vars(args)))
    forms = torch.randn(20, 3, 8, 8)
    loader_train = DataLoader(pictures(2400, forms), batch_size=args.batch_size, shuffle=True)
    loader_eval = DataLoader(pictures(800, forms), batch_size=200)
    model = nn.Sequential(
        nn.Conv2d(3, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU(), nn.Conv2d(24, 32, 3, stride=2, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten(), nn.Linear(512, 20)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=args.momentum, weight_decay=args.weight_decay)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    train_loss_fn = nn.CrossEntropyLoss(label_smoothing=args.smoothing)
    validate_loss_fn = nn.CrossEntropyLoss()
    with open(os.path.join(args.output, "summary.csv"), "w", newline="") as f:
        writer = csv.DictWriter(f, ["epoch", "train_loss", "eval_loss", "eval_top1", "lr"])
        writer.writeheader()
        for epoch in range(args.epochs):
            model.train()
            total = 0.0
            for x, y in loader_train:
                optimizer.zero_grad()
                loss = train_loss_fn(model(x), y)
                loss.backward()
                if args.clip_grad is not None:
                    nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
                optimizer.step()
                total += loss.item()
            lr = optimizer.param_groups[0]["lr"]
            scheduler.step()
            model.eval()
            losses, right, seen = 0.0, 0, 0
            with torch.no_grad():
                for x, y in loader_eval:
                    out = model(x)
                    losses += validate_loss_fn(out, y).item() * len(y)
                    right += (out.argmax(1) == y).sum().item()
                    seen += len(y)
            writer.writerow({"epoch": epoch, "train_loss": total / len(loader_train), "eval_loss": losses / seen, "eval_top1": 100 * right / seen, "lr": lr})
            f.flush()
            torch.save(model.state_dict(), os.path.join(args.output, "last.pth.tar"))


if __name__ == "__main__":
    main()
