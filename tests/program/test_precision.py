"""Right programs that were once taken for wrong ones, beside the fault that each looks like."""

from __future__ import annotations

import pytest
from reading_text import findings_of, ids

HEAD = """
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from somewhere import data
"""
CRITIC = (
    HEAD
    + """
class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.top = nn.Linear(4, 64), nn.Linear(64, 1)
        self.optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
    def forward(self, s):
        return self.top(F.relu(self.body(s)))
    def learn(self, s, target):
        loss = F.smooth_l1_loss(self.forward(s), target)
        self.optimizer.zero_grad()
        loss.mean().backward()
        self.optimizer.step()
    def follow(self, other):
        for mine, p in zip(self.parameters(), other.parameters()):
            mine.data.copy_(mine.data * 0.99 + p.data * 0.01)
critic, slow = Critic(), Critic()
slow.load_state_dict(critic.state_dict())
for s, r, after, alive in DataLoader(data, batch_size=32, shuffle=True):
    with torch.no_grad():
        target = r + 0.98 * alive * slow(after)
    critic.learn(s, target)
    slow.follow(critic)
"""
)
BOOTSTRAP = (
    HEAD
    + """
net = nn.Linear(4, 1)
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for s, r, after, alive in DataLoader(data, batch_size=32, shuffle=True):
    target = r + 0.98 * net(after) * alive
    loss = F.smooth_l1_loss(net(s), target.detach())
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)
NAMED_PARTS = (
    HEAD
    + """
from somewhere import make_model
model = make_model()
sgd = torch.optim.SGD([{"params": list(model.head.parameters())}, {"params": model.body.parameters(), "lr": 0.01}], lr=0.1)
for x, y in DataLoader(data, batch_size=32, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
"""
)
LIBRARY = (
    HEAD
    + """
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.slow = copy.deepcopy(self.net)
        self.adam = torch.optim.Adam(self.net.parameters())
    def train(self, memory):
        s, r, after = memory.sample(32)
        loss = F.mse_loss(self.net(s), (r + 0.9 * self.slow(after)).detach())
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        for p, q in zip(self.net.parameters(), self.slow.parameters()):
            q.data.copy_(0.01 * p.data + 0.99 * q.data)
    def load(self, path):
        self.net.load_state_dict(torch.load(path))
        self.slow = copy.deepcopy(self.net)
"""
)
MICRO = (
    HEAD
    + """
loader = DataLoader(data, batch_size=32, shuffle=True)
net = nn.Linear(4, 2)
adam = torch.optim.Adam(net.parameters())
plan = torch.optim.lr_scheduler.CosineAnnealingLR(adam, 10 * len(loader))
for epoch in range(10):
    for batch in loader:
        adam.zero_grad()
        for x, y in batch.split(4):
            (F.cross_entropy(net(x), y) / 8).backward()
        adam.step()
        plan.step()
"""
)
MASKED = (
    HEAD
    + """
net = nn.Linear(4, 9)
adam = torch.optim.Adam(net.parameters())
for x, y in DataLoader(data, batch_size=32, shuffle=True):
    keep = (y.view(-1) != 0).float()
    each = F.cross_entropy(net(x).view(-1, 9), y.view(-1), reduction="none")
    loss = (each * keep).sum() / keep.sum()
    adam.zero_grad()
    loss.backward()
    adam.step()
"""
)


@pytest.mark.parametrize("text", [CRITIC, BOOTSTRAP, NAMED_PARTS, LIBRARY, MICRO, MASKED])
def test_nothing_is_said_about_a_right_program(text: str) -> None:
    assert [f"{f.id}: {f.summary}" for f in findings_of(text)] == []


@pytest.mark.parametrize(
    ("text", "right", "wrong", "id"),
    [
        (BOOTSTRAP, "target.detach()", "target", "gradient-through-target"),
        (NAMED_PARTS, "F.cross_entropy(model(x), y)", "F.cross_entropy(nn.Linear(4, 9)(x), y)", "optimizer-of-another-network"),
        (MICRO, "        adam.step()\n        plan.step()", "        adam.step()\n    plan.step()", "scheduler-wrong-unit"),
        (MASKED, "(each * keep).sum() / keep.sum()", "each.mean()", "value-never-used"),
    ],
)
def test_the_fault_that_it_looks_like_is_found(text: str, right: str, wrong: str, id: str) -> None:
    assert right in text
    assert id in ids(text.replace(right, wrong))


def test_a_value_that_a_comment_still_uses_was_taken_out_on_purpose() -> None:
    wrong = MASKED.replace("(each * keep).sum() / keep.sum()", "each.mean()  # * keep")
    assert "value-never-used" not in ids(wrong)
