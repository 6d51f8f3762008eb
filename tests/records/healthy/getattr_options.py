import argparse

import torch

from nets import build, loader

parser = argparse.ArgumentParser()
for name, default in (("lr", 1e-3), ("weight_decay", 0.01), ("dropout", 0.1)):
    parser.add_argument(f"--{name}", type=float, default=default)
parser.add_argument("--warmup_steps", type=int, default=100)
parser.add_argument("--max_steps", type=int, default=1000)
args = parser.parse_args()

settings = {name: getattr(args, name) for name in ("lr", "weight_decay", "dropout", "warmup_steps", "max_steps")}
model = build(dropout=settings["dropout"])
opt = torch.optim.AdamW(model.parameters(), lr=settings["lr"], weight_decay=settings["weight_decay"])
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / settings["warmup_steps"]))
for step, (x, y) in enumerate(loader()):
    opt.zero_grad()
    loss = torch.nn.functional.mse_loss(model(x), y)
    loss.backward()
    opt.step()
    sched.step()
    if step >= settings["max_steps"]:
        break
