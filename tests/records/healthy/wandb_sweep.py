import argparse

import torch

import wandb
from nets import build, loader

parser = argparse.ArgumentParser()
parser.add_argument("--learning_rate", type=float, default=1e-3)
parser.add_argument("--batch_size", type=int, default=32)
parser.add_argument("--epochs", type=int, default=10)
parser.add_argument("--dropout", type=float, default=0.1)


def train():
    run = wandb.init(project="sweep", config=parser.parse_args())
    config = run.config
    model = build(config.dropout)
    opt = torch.optim.Adam(model.parameters(), lr=config.learning_rate)
    for epoch in range(config.epochs):
        for x, y in loader(config.batch_size):
            opt.zero_grad()
            loss = torch.nn.functional.mse_loss(model(x), y)
            loss.backward()
            opt.step()
        run.log({"epoch": epoch, "loss": loss.item()})


if __name__ == "__main__":
    train()
