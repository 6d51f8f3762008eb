"""The config given to wandb is a record; the script is steered by constants."""
import torch

import wandb
from nets import build, loader

LR, EPOCHS = 0.02, 10
wandb.init(project="demo", config={"learning_rate": LR, "architecture": "CNN", "dataset": "CIFAR-100", "epochs": EPOCHS})
model = build()
opt = torch.optim.SGD(model.parameters(), lr=LR, momentum=0.9)
for _ in range(EPOCHS):
    for x, y in loader():
        opt.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
