import torch

import wandb
from nets import build, loader

config = {
    "learning_rate": 3e-4,
    "batch_size": 64,
    "epochs": 12,
    "architecture": "mlp",
    "dataset": "tabular",
    "grad_clip": 1.0,
    "label_smoothing": 0.1,
}
wandb.init(project="demo", config=config)
model = build(config["architecture"])
opt = torch.optim.AdamW(model.parameters(), lr=config["learning_rate"])
criterion = torch.nn.CrossEntropyLoss(label_smoothing=config["label_smoothing"])
for _ in range(config["epochs"]):
    for x, y in loader(config["batch_size"]):
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), config["grad_clip"])
        opt.step()
    wandb.log({"loss": loss.item()})
