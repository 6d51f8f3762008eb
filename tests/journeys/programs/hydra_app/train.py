"""A classifier of points, configured by Hydra."""
import csv

import hydra
import torch
from omegaconf import DictConfig
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg: DictConfig) -> None:
    torch.manual_seed(cfg.seed)
    centres = 2.0 * torch.randn(24, 12, generator=torch.Generator().manual_seed(7))

    def points(n):
        at = torch.randint(24, (n,))
        return TensorDataset(centres[at] + torch.randn(n, 12), at % 8)

    train = DataLoader(points(cfg.data.train_size), batch_size=cfg.data.batch_size, shuffle=True)
    val = DataLoader(points(1000), batch_size=250)
    model = nn.Sequential(nn.Linear(12, 96), nn.ReLU(), nn.Linear(96, 96), nn.ReLU(), nn.Linear(96, 8))
    optimizer = torch.optim.AdamW(model.parameters(), lr=cfg.optim.lr, weight_decay=cfg.optim.weight_decay)
    criterion = nn.CrossEntropyLoss()
    with open("metrics.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["epoch", "train_loss", "val_loss", "val_accuracy"])
        for epoch in range(cfg.trainer.epochs):
            model.train()
            total = 0.0
            for x, y in train:
                loss = criterion(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += loss.item()
            model.eval()
            with torch.no_grad():
                outs = [(model(x), y) for x, y in val]
            val_loss = sum(criterion(o, y).item() for o, y in outs) / len(outs)
            accuracy = sum((o.argmax(1) == y).sum().item() for o, y in outs) / 1000
            writer.writerow([epoch, total / len(train), val_loss, accuracy])
            file.flush()


if __name__ == "__main__":
    main()
