import argparse

import torch

from nets import build, curriculum_batch, val_loader


def evaluate(model):
    model.eval()
    with torch.no_grad():
        total = sum(torch.nn.functional.mse_loss(model(x), y).item() for x, y in val_loader)
    model.train()
    return total / len(val_loader)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--steps", type=int, default=10000)
    p.add_argument("--ramp", type=int, default=2000)
    p.add_argument("--eval-every", type=int, default=500)
    a = p.parse_args()
    model = build()
    opt = torch.optim.Adam(model.parameters())
    best_val = float("inf")
    for step in range(a.steps):
        x, y = curriculum_batch(min(1.0, step / a.ramp))
        opt.zero_grad()
        torch.nn.functional.mse_loss(model(x), y).backward()
        opt.step()
        if step % a.eval_every == 0:
            val = evaluate(model)
            if val < best_val:
                best_val = val
                torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
