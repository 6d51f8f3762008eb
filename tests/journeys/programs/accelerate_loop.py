"""A classifier of points with accelerate; its settings stand at the top."""
import json

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

LEARNING_RATE = 2e-3
EPOCHS = 16
BATCH_SIZE = 32
WEIGHT_DECAY = 0.01

set_seed(1)
accelerator = Accelerator(gradient_accumulation_steps=2, cpu=True)
centres = 1.2 * torch.randn(24, 12, generator=torch.Generator().manual_seed(3))


def points(n):
    at = torch.randint(24, (n,))
    return centres[at] + torch.randn(n, 12), at % 8


train_x, train_y = points(3200)
train_set = TensorDataset(train_x, train_y)
val_set = TensorDataset(*points(1000))
train_loader = DataLoader(train_set, batch_size=BATCH_SIZE, shuffle=True)
val_loader = DataLoader(val_set, batch_size=250)

model = nn.Sequential(nn.Linear(12, 96), nn.GELU(), nn.Dropout(0.1), nn.Linear(96, 96), nn.GELU(), nn.Linear(96, 8))
optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)
total_steps = EPOCHS * len(train_loader) // 2
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=LEARNING_RATE, total_steps=total_steps + 1)
model, optimizer, train_loader, val_loader = accelerator.prepare(model, optimizer, train_loader, val_loader)
criterion = nn.CrossEntropyLoss()

log = open("log.jsonl", "w")
step = 0
for epoch in range(EPOCHS):
    model.train()
    for batch, (x, y) in enumerate(train_loader):
        with accelerator.accumulate(model):
            loss = criterion(model(x), y)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        if accelerator.sync_gradients:
            scheduler.step()
            step += 1
            if step % 10 == 0:
                log.write(json.dumps({"step": step, "epoch": epoch, "train/loss": loss.item(), "lr": scheduler.get_last_lr()[0]}) + "\n")
    model.eval()
    losses, right, seen = [], 0, 0
    with torch.no_grad():
        for x, y in val_loader:
            out = model(x)
            losses.append(criterion(out, y).item())
            right += (out.argmax(-1) == y).sum().item()
            seen += len(y)
    log.write(json.dumps({"step": step, "epoch": epoch, "val/loss": sum(losses) / len(losses), "val/accuracy": right / seen}) + "\n")
    log.flush()
accelerator.save_model(model, "model")
