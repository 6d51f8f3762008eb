import argparse

import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from seg import Dice, UNet, train_loader, val_loader


def validate(model):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for image, mask in val_loader:
            total += Dice(model(image), mask).item()
    return total / len(val_loader)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--patience", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--checkpoint", type=str, default="best.pt")
    args = parser.parse_args()
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    scheduler = ReduceLROnPlateau(optimizer, mode="max", patience=args.patience)
    best = 0.0
    for epoch in range(args.epochs):
        model.train()
        for image, mask in train_loader:
            optimizer.zero_grad()
            loss = 1 - Dice(model(image), mask)
            loss.backward()
            optimizer.step()
        score = validate(model)
        scheduler.step(score)
        if score > best:
            best = score
            torch.save(model.state_dict(), args.checkpoint)
        print(f"{epoch} {score:.4f} lr {optimizer.param_groups[0]['lr']:.2e}")


if __name__ == "__main__":
    main()
