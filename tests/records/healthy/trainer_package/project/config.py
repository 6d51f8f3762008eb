import argparse
from types import SimpleNamespace


def get_config():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--warmup_epochs", type=int, default=2)
    parser.add_argument("--grad_clip", type=float, default=5.0)
    parser.add_argument("--resume", type=str, default=None)
    parser.add_argument("--ema_decay", type=float, default=0.999)
    return SimpleNamespace(**vars(parser.parse_args()))
