import argparse

import torch

from nets import loader, net_of

OPTIMIZERS = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW}


def get_parser():
    parser = argparse.ArgumentParser()
    parser.add_argument("--optimizer", choices=list(OPTIMIZERS), default="adamw")
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--arch", default="mlp")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--amp", action="store_true")
    return parser


def run(arch, optimizer, lr, epochs, amp):
    model = net_of(arch)
    opt = OPTIMIZERS[optimizer](model.parameters(), lr=lr)
    scaler = torch.amp.GradScaler("cuda", enabled=amp)
    for _ in range(epochs):
        for x, y in loader():
            opt.zero_grad()
            with torch.autocast("cuda", enabled=amp):
                loss = torch.nn.functional.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()


if __name__ == "__main__":
    run(**vars(get_parser().parse_args()))
