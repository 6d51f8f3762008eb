import argparse

import torch
from data import make_loader
from models import build


def get_args():
    p = argparse.ArgumentParser()
    p.add_argument("--lr", type=float, default=3e-4)
    p.add_argument("--clip", type=float, default=1.0)
    p.add_argument("--epochs", type=int, default=10)
    p.add_argument("--fp16", action="store_true")
    p.add_argument("--batch-size", type=int, default=32)
    return p.parse_args()


def main():
    args = get_args()
    model = build().cuda()
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr)
    scaler = torch.cuda.amp.GradScaler(enabled=args.fp16)
    loader = make_loader(args.batch_size)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=args.epochs * len(loader))
    for epoch in range(args.epochs):
        for x, y in loader:
            opt.zero_grad(set_to_none=True)
            with torch.autocast("cuda", enabled=args.fp16):
                loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(opt)
            scaler.update()
            sched.step()
        print(epoch, loss.item(), sched.get_last_lr())


if __name__ == "__main__":
    main()
