"""A training of milliseconds: noisy gradient descent on a bowl, logged like any other. Faults come by its config.

Divergence: the rate over 2 / curvature. Decline: weight decay pulls the weights away from the optimum.
"""

import argparse
import math
import os
import random
import time


def options(path):
    out = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            key, sep, value = line.partition(":")
            if sep and not line.startswith("#"):
                out[key.strip()] = float(value.split("#")[0])
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", default="config.yaml")
    parser.add_argument("--out", default=".")
    parser.add_argument("--seed", type=int)
    args = parser.parse_args()
    o = options(args.config)
    rng = random.Random(args.seed if args.seed is not None else int(o["seed"]))
    curvature = 1.0 + 0.05 * rng.random()
    weight = 3.0 + rng.random()
    steps, lr, decay, noise = int(o["total_steps"]), o["lr"], o["weight_decay"], o.get("noise", 0.05)
    pause = float(os.environ.get("TOY_PAUSE", "0"))
    with open(os.path.join(args.out, "train.log"), "w", encoding="utf-8") as log:
        for step in range(1, steps + 1):
            rate = lr * min(1.0, step / max(1.0, o.get("warmup_steps", 1)))
            grad = curvature * (weight - 1.0) + noise * rng.gauss(0, 1)
            weight -= rate * grad + rate * decay * weight
            loss = 0.5 * curvature * (weight - 1.0) ** 2 + 0.1 + noise * 0.1 * abs(rng.gauss(0, 1))
            if not math.isfinite(loss) or loss > 1e30:
                loss = float("nan")
                weight = float("nan")
            if step % 2 == 0:
                log.write(f"step {step} train_loss {loss:.6g} lr {rate:.3g}\n")
            if step % 10 == 0:
                log.write(f"step {step} val_loss {loss * 1.02:.6g}\n")
                log.flush()
            if pause:
                time.sleep(pause)
    print("done")


if __name__ == "__main__":
    main()
