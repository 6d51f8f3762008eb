import argparse

import torch

from speech import Recogniser, corpus


def train(args):
    model = Recogniser(args.hidden)
    opt = torch.optim.Adam(model.parameters(), lr=args.lr)
    for _ in range(args.epochs):
        for batch in corpus(args.data, args.batch_size):
            opt.zero_grad()
            model.loss(batch).backward()
            opt.step()
    torch.save(model.state_dict(), args.out)


def evaluate(args):
    model = Recogniser(args.hidden)
    model.load_state_dict(torch.load(args.weights))
    model.eval()
    print(sum(model.errors(b) for b in corpus(args.data, args.batch_size)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--data", default="data")
    parser.add_argument("--batch-size", type=int, default=8)
    sub = parser.add_subparsers(required=True)
    t = sub.add_parser("train")
    t.add_argument("--lr", type=float, default=1e-3)
    t.add_argument("--epochs", type=int, default=5)
    t.add_argument("--out", default="model.pt")
    t.set_defaults(func=train)
    e = sub.add_parser("evaluate")
    e.add_argument("--weights", required=True)
    e.set_defaults(func=evaluate)
    args = parser.parse_args()
    args.func(args)


if __name__ == "__main__":
    main()
