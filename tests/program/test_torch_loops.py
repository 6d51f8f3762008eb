"""Faults of plain torch loops: each is found in its program, and the healthy program beside it is clean."""

from __future__ import annotations

import pytest
from reading_text import findings_of

HEAD = """
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset
"""
PLAIN = (
    HEAD
    + """
raw = torch.from_numpy(np.load("pictures.npy")).float()
labels = torch.from_numpy(np.load("labels.npy"))
order = torch.randperm(len(raw)).tolist()
whole = TensorDataset(raw / 255, labels)
train_part, val_part = Subset(whole, order[2000:]), Subset(whole, order[:2000])
train_loader = DataLoader(train_part, batch_size=64, shuffle=True)
val_loader = DataLoader(val_part, batch_size=256)
EPOCHS = 30

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(784, 256), nn.Dropout(0.2), nn.Linear(256, 10)

    def forward(self, x):
        hidden = F.relu(self.first(x))
        return self.last(self.drop(hidden))

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[int(EPOCHS * 0.5), int(EPOCHS * 0.8)])

def evaluate(loader):
    net.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            total += F.cross_entropy(net(x), y).item() * len(y)
            count += len(y)
    return total / count

def fit_epoch(loader):
    net.train()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

lowest, best = float("inf"), None
for epoch in range(EPOCHS):
    fit_epoch(train_loader)
    scheduler.step()
    score = evaluate(val_loader)
    if score < lowest:
        lowest, best = score, None
        best = copy.deepcopy(net.state_dict())
net.load_state_dict(best)
"""
)
WORDS = (
    HEAD
    + """
PAD = 0
class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8000, 64, padding_idx=PAD)
        self.score, self.out = nn.Linear(64, 1), nn.Linear(64, 4)

    def forward(self, ids):
        x = self.embed(ids)
        energy = self.score(x).squeeze(-1).masked_fill(ids == PAD, float("-inf"))
        weight = torch.softmax(energy, dim=1)
        return self.out((weight.unsqueeze(-1) * x).sum(1))

texts, topics = torch.load("texts.pt")
loader = DataLoader(TensorDataset(texts, topics), batch_size=32, shuffle=True)
reader = Reader()
adam = torch.optim.Adam(reader.parameters(), lr=1e-3)
for epoch in range(5):
    for ids, topic in loader:
        loss = F.cross_entropy(reader(ids), topic)
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)
SEARCH = (
    HEAD
    + """
pictures, kinds = torch.load("kinds.pt")
tower = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 32))
adam = torch.optim.Adam(tower.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(pictures, kinds), batch_size=128, shuffle=True)
held, held_kinds = torch.load("other_kinds.pt")

def recall():
    with torch.no_grad():
        e = F.normalize(tower(held), dim=1)
        near = e @ e.t()
        near.fill_diagonal_(-2)
        return (held_kinds[near.argmax(1)] == held_kinds).float().mean().item()

for epoch in range(10):
    for x, kind in loader:
        z = F.normalize(tower(x), dim=1)
        scores = z @ z.t() / 0.1
        same = (kind[:, None] == kind[None, :]).float()
        loss = F.mse_loss(torch.sigmoid(scores), same)
        adam.zero_grad()
        loss.backward()
        adam.step()
    print(recall())
"""
)
RANKS = PLAIN.replace("net = Net()", "net = nn.parallel.DistributedDataParallel(Net())")
SIZES = (
    HEAD
    + """
train_x, train_y = torch.from_numpy(np.load("train_x.npy")), torch.from_numpy(np.load("train_y.npy"))
test_x, test_y = torch.from_numpy(np.load("test_x.npy")), torch.from_numpy(np.load("test_y.npy"))
net = nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))
RATE = 0.1
sgd = torch.optim.SGD(net.parameters(), lr=RATE)
for epoch in range(20):
    for rows in torch.randperm(len(train_x)).split(100):
        loss = F.cross_entropy(net(train_x[rows].float() / 255), train_y[rows])
        sgd.zero_grad()
        loss.backward()
        sgd.step()
    right = 0
    with torch.no_grad():
        for i in range(0, len(test_x), 500):
            right += (net(test_x[i:i + 500].float() / 255).argmax(1) == test_y[i:i + 500]).sum().item()
    print(epoch, right / len(test_x))
    for group in sgd.param_groups:
        group["lr"] *= 0.9
"""
)
RESUMED = (
    PLAIN.replace("lowest, best =", 'start = 0\nif RESUME:\n    state = torch.load("last.pt")\n    net.load_state_dict(state["net"])\n    optimizer.load_state_dict(state["optimizer"])\n    scheduler.load_state_dict(state["scheduler"])\n    start = state["epoch"] + 1\nlowest, best =', 1)
    .replace("for epoch in range(EPOCHS):", "for epoch in range(start, EPOCHS):")
    .replace("    scheduler.step()\n", '    scheduler.step()\n    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "scheduler": scheduler.state_dict(), "epoch": epoch}, "last.pt")\n')
    .replace("EPOCHS = 30", "EPOCHS = 30\nRESUME = __import__('os').path.exists('last.pt')")
)  # fmt: skip
CASES = {
    "held-out-rows-trained": (PLAIN, "Subset(whole, order[2000:])", "Subset(whole, order)"),
    "milestones-after-the-end": (PLAIN, "int(EPOCHS * 0.5), int(EPOCHS * 0.8)", "int(EPOCHS * 5), int(EPOCHS * 8)"),
    "mean-divided-by-samples": (PLAIN, ".item() * len(y)", ".item()"),
    "kept-by-reference": (PLAIN, "copy.deepcopy(net.state_dict())", "net.state_dict()"),
    "trained-on-validation": (PLAIN, "    scheduler.step()\n", "    fit_epoch(val_loader)\n    scheduler.step()\n"),
    "value-never-used": (PLAIN, "self.last(self.drop(hidden))", "self.last(F.relu(self.first(x)))"),
    "trained-without-gradient": (PLAIN, "        hidden = F.relu", "        with torch.no_grad():\n            hidden = F.relu"),
    "mask-inverted": (WORDS, "ids == PAD", "ids != PAD"),
    "softmax-wrong-axis": (WORDS, "dim=1)", "dim=0)"),
    "neighbour-is-itself": (SEARCH, "        near.fill_diagonal_(-2)\n", ""),
    "ranks-apart": (RANKS, "loss = F.cross_entropy(net(x), y)", "loss = F.cross_entropy(net.module(x), y)"),
    "input-of-another-size": (SIZES, "test_x[i:i + 500].float() / 255", "test_x[i:i + 500].float()"),
    "setting-changed-too-late": (SIZES, '    for group in sgd.param_groups:\n        group["lr"] *= 0.9', "    RATE *= 0.9"),
    "resume-leaves-state": (RESUMED, '    scheduler.load_state_dict(state["scheduler"])\n', ""),
}


@pytest.mark.parametrize("id", CASES)
def test_the_fault_is_found(id: str) -> None:
    text, old, new = CASES[id]
    assert old in text
    assert id in {f.id for f in findings_of(text.replace(old, new, 1))}


@pytest.mark.parametrize("id", CASES)
def test_the_healthy_program_is_clean(id: str) -> None:
    shown = [f"{f.id}: {f.summary}" for f in findings_of(CASES[id][0]) if f.grade in ("is", "suspected") and f.severity != "note"]
    assert shown == []
