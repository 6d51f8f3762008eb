import argparse

import torch
from torch import nn, optim


class Sequence(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTMCell(1, 51)
        self.linear = nn.Linear(51, 1)

    def forward(self, x):
        return self.linear(self.lstm(x)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=15)
    opt = parser.parse_args()
    seq, criterion = Sequence(), nn.MSELoss()
    x, y = torch.randn(97, 1), torch.randn(97, 1)
    optimizer = optim.LBFGS(seq.parameters(), lr=0.8)
    for i in range(opt.steps):
        print("STEP:", i)

        def closure():
            optimizer.zero_grad()
            loss = criterion(seq(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)
