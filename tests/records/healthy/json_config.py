import json
import sys

import torch

from vision import build_model, build_loader


class DotDict(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__


def main():
    with open(sys.argv[1]) as f:
        config = DotDict(json.load(f))
    model = build_model(config.arch, config.num_classes)
    optimizer = torch.optim.SGD(model.parameters(), config.lr, config.momentum, weight_decay=config.weight_decay)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, config.step_size, config.gamma)
    loader = build_loader(config.data, config.batch_size)
    for epoch in range(config.epochs):
        model.train()
        for x, y in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        scheduler.step()
        if (epoch + 1) % config.get("save_every", 10) == 0:
            torch.save(model.state_dict(), f"{config.arch}_{epoch}.pth")


if __name__ == "__main__":
    main()
