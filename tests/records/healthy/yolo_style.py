import argparse
from pathlib import Path

import numpy as np
import torch
import yaml
from torch.optim import lr_scheduler
from tqdm import tqdm

from det import Detector, ModelEMA, compute_loss, create_dataloader


def parse_opt(known=False):
    parser = argparse.ArgumentParser()
    parser.add_argument("--weights", type=str, default="")
    parser.add_argument("--hyp", type=str, default="hyp.yaml")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--resume", nargs="?", const=True, default=False)
    parser.add_argument("--project", default="runs/train")
    parser.add_argument("--name", default="exp")
    parser.add_argument("--cos-lr", action="store_true")
    parser.add_argument("--patience", type=int, default=100)
    return parser.parse_known_args()[0] if known else parser.parse_args()


def train(hyp, opt, device):
    save_dir = Path(opt.project) / opt.name
    save_dir.mkdir(parents=True, exist_ok=True)
    with open(hyp, errors="ignore") as f:
        hyp = yaml.safe_load(f)
    model = Detector().to(device)
    nbs = 64
    accumulate = max(round(nbs / opt.batch_size), 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=hyp["lr0"], momentum=hyp["momentum"], nesterov=True)
    if opt.cos_lr:
        lf = lambda x: ((1 - np.cos(x * np.pi / opt.epochs)) / 2) * (hyp["lrf"] - 1) + 1  # noqa: E731
    else:
        lf = lambda x: (1 - x / opt.epochs) * (1.0 - hyp["lrf"]) + hyp["lrf"]  # noqa: E731
    scheduler = lr_scheduler.LambdaLR(optimizer, lr_lambda=lf)
    ema = ModelEMA(model)
    start = 0
    if opt.resume:
        ckpt = torch.load(opt.weights)
        model.load_state_dict(ckpt["model"])
        optimizer.load_state_dict(ckpt["optimizer"])
        ema.ema.load_state_dict(ckpt["ema"])
        start = ckpt["epoch"] + 1
    loader = create_dataloader(opt.batch_size)
    scheduler.last_epoch = start - 1
    scaler = torch.cuda.amp.GradScaler()
    nb, nw, last_opt_step, stale = len(loader), 100, -1, 0
    for epoch in range(start, opt.epochs):
        model.train()
        optimizer.zero_grad()
        for i, (imgs, targets) in enumerate(tqdm(loader, total=nb)):
            ni = i + nb * epoch
            if ni <= nw:
                accumulate = max(1, np.interp(ni, [0, nw], [1, nbs / opt.batch_size]).round())
                for group in optimizer.param_groups:
                    group["lr"] = np.interp(ni, [0, nw], [0.0, group["initial_lr"] * lf(epoch)])
            with torch.cuda.amp.autocast():
                loss = compute_loss(model(imgs.to(device)), targets)
            scaler.scale(loss).backward()
            if ni - last_opt_step >= accumulate:
                scaler.unscale_(optimizer)
                torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=10.0)
                scaler.step(optimizer)
                scaler.update()
                optimizer.zero_grad()
                ema.update(model)
                last_opt_step = ni
        scheduler.step()
        ckpt = {"epoch": epoch, "model": model.state_dict(), "ema": ema.ema.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save(ckpt, save_dir / "last.pt")
        stale += 1
        if stale > opt.patience:
            break


if __name__ == "__main__":
    options = parse_opt()
    train(options.hyp, options, torch.device("cuda"))
