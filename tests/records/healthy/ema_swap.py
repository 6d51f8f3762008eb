import argparse

import torch
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from vision import resnet, train_loader, val_loader


def evaluate(model):
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in val_loader:
            hits += (model(x).argmax(1) == y).sum().item()
    return hits


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--epochs", type=int, default=90)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--ema-decay", type=float, default=0.999)
    parser.add_argument("--ema-steps", type=int, default=1)
    args = parser.parse_args()
    model = resnet()
    ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(args.ema_decay), use_buffers=True)
    loader = train_loader(args.batch_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(args.epochs):
        model.train()
        for i, (x, y) in enumerate(loader):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
            if i % args.ema_steps == 0:
                ema.update_parameters(model)
        update_bn(loader, ema)
        print(epoch, evaluate(model), evaluate(ema))
    torch.save(ema.module.state_dict(), "ema.pt")


if __name__ == "__main__":
    main()
