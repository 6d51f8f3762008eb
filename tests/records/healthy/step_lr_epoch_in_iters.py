"""A schedule in iterations, stepped every iteration of a while loop."""
import argparse

import torch

from nets import build, endless

parser = argparse.ArgumentParser()
parser.add_argument("--total_iter", type=int, default=40000)
parser.add_argument("--warmup_iter", type=int, default=500)
parser.add_argument("--lr", type=float, default=2e-4)
opt = parser.parse_args()

net = build()
optimizer_g = torch.optim.AdamW(net.parameters(), lr=opt.lr)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer_g, milestones=[20000, 30000], gamma=0.5)
stream = endless()
current_iter = 0
while current_iter < opt.total_iter:
    current_iter += 1
    lq, gt = next(stream)
    if current_iter > 1:
        scheduler.step()
    if current_iter < opt.warmup_iter:
        for group in optimizer_g.param_groups:
            group["lr"] = group["initial_lr"] / opt.warmup_iter * current_iter
    optimizer_g.zero_grad()
    loss = torch.nn.functional.l1_loss(net(lq), gt)
    loss.backward()
    optimizer_g.step()
