"""A re-creation, in small, of the command line of case 004."""

import argparse

from train import Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("mode", choices=["train", "distributed"])
    parser.add_argument("--use-ffcv", action="store_true")
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--lr", type=float, default=0.8)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--weight-decay", type=float, default=1e-4)
    parser.add_argument("--label-smoothing", type=float, default=0.1)
    parser.add_argument("--scheduler", default="onecycle")
    parser.add_argument("--warmup-epochs", type=int, default=5)
    parser.add_argument("--progressive-resize", action="store_true")
    parser.add_argument("--amp", action="store_true", default=True)
    parser.add_argument("--use-ema", action="store_true")
    parser.add_argument("--gradient-clip", type=float, default=1.0)
    parser.add_argument("--world-size", type=int, default=1)
    parser.add_argument("--num-workers", type=int, default=8, help="per GPU")
    args = parser.parse_args()
    config = vars(args)
    Trainer(config, rank=0).train()


if __name__ == "__main__":
    main()
