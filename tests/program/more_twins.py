"""Twins for checks that were written after a look at programs of strangers: id, text, what is healthy in it, the fault in its place."""

from __future__ import annotations

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
"""
STEP = """
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
CONTRAST = (
    HEAD
    + """
from pictures import unlabelled
shots = unlabelled()
def jitter(x):
    return x + 0.1 * torch.randn_like(x)
tower = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
adam = torch.optim.Adam(tower.parameters(), lr=1e-3)
for epoch in range(20):
    for rows in torch.randperm(len(shots)).split(128):
        one = jitter(shots[rows])
        two = jitter(shots[rows])
        scores = F.normalize(tower(one), dim=1) @ F.normalize(tower(two), dim=1).t() / 0.2
        loss = F.cross_entropy(scores, torch.arange(len(rows)))
"""
    + STEP
)
PIXELS = (
    HEAD
    + """
from pictures import binary
class MaskedConv(nn.Conv2d):
    def __init__(self, kind, a, b):
        super().__init__(a, b, 3, padding=1)
        keep = torch.ones(3, 3)
        keep[1, 1 + (kind == "B"):] = 0
        keep[2:] = 0
        self.register_buffer("keep", keep)
    def forward(self, x):
        return F.conv2d(x, self.weight * self.keep, self.bias, padding=1)
net = nn.Sequential(MaskedConv("A", 1, 32), nn.ReLU(), MaskedConv("B", 32, 32), nn.ReLU(), nn.Conv2d(32, 1, 1))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
digits = binary()
for epoch in range(20):
    for rows in torch.randperm(len(digits)).split(64):
        x = digits[rows]
        loss = F.binary_cross_entropy_with_logits(net(x), x)
"""
    + STEP
)
WRAPPER = """
import gymnasium as gym
from stable_baselines3 import PPO
class Centred(gym.Wrapper):
    def step(self, action):
        seen, earned, over, cut, info = self.env.step(action)
        earned = earned - 0.1 * abs(float(seen[0]))
        return seen, earned, over, cut, info
agent = PPO("MlpPolicy", Centred(gym.make("CartPole-v1")))
agent.learn(100_000)
"""
SKORCH = (
    HEAD
    + """
from skorch import NeuralNetClassifier
from tables import x, y
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(20, 64), nn.Linear(64, 4)
    def forward(self, x):
        return F.softmax(self.b(F.relu(self.a(x))), dim=-1)
net = NeuralNetClassifier(Small, max_epochs=20, lr=0.05)
net.fit(x, y)
"""
)
DIFFUSE = (
    HEAD
    + """
from shapes import roll
rates = torch.linspace(1e-4, 0.02, 500)
keeps = 1 - rates
bar = keeps.cumprod(0)
class Guess(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.a, self.b = nn.Embedding(500, 64), nn.Linear(2, 64), nn.Linear(64, 2)
    def forward(self, x, t):
        return self.b(F.silu(self.a(x) + self.t(t)))
net = Guess()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
points = roll()
@torch.no_grad()
def draw(n):
    x = torch.randn(n, 2)
    for i in reversed(range(500)):
        e = net(x, torch.full((n,), i))
        x = (x - rates[i] / (1 - bar[i]).sqrt() * e) / keeps[i].sqrt()
    return x
for epoch in range(20):
    for rows in torch.randperm(len(points)).split(128):
        clean = points[rows]
        t = torch.randint(0, 500, (len(rows),))
        noise = torch.randn_like(clean)
        noisy = bar[t].sqrt()[:, None] * clean + (1 - bar[t]).sqrt()[:, None] * noise
        loss = F.mse_loss(net(noisy, t), noise)
"""
    + STEP
    + "    print(draw(100).std())\n"
)
FLOW = (
    HEAD
    + """
from shapes import moons
class Half(nn.Module):
    def __init__(self, mask):
        super().__init__()
        self.register_buffer("keep", mask)
        self.f = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 4))
    def forward(self, x):
        s, t = self.f(x * self.keep).chunk(2, dim=1)
        s = torch.tanh(s) * (1 - self.keep)
        return x * torch.exp(s) + t * (1 - self.keep), s.sum(dim=1)
class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Half(torch.tensor([float(i % 2), float(1 - i % 2)])) for i in range(8))
    def log_prob(self, x):
        volume = torch.zeros(len(x))
        for layer in self.layers:
            x, change = layer(x)
            volume = volume + change
        return volume - 0.5 * (x ** 2).sum(1)
net = Flow()
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
points = moons()
for epoch in range(20):
    for rows in torch.randperm(len(points)).split(128):
        loss = -net.log_prob(points[rows]).mean()
"""
    + STEP
)
COLLATED = """
import torch
from texts import Lines
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
def together(rows):
    x = torch.stack([r["input_ids"] for r in rows])
    return {"input_ids": x, "labels": x.clone()}
trainer = Trainer(model=GPT2LMHeadModel(GPT2Config()), args=TrainingArguments("out", max_steps=500), train_dataset=Lines("train"),
                  eval_dataset=Lines("dev"), data_collator=together)
trainer.train()
"""
BOOSTED = """
import lightgbm as lgb
import pandas as pd
from sklearn.preprocessing import OrdinalEncoder
table = pd.read_csv("shops.csv")
train, valid = table[table.week < 80].copy(), table[table.week >= 80].copy()
codes = OrdinalEncoder()
train["shop"] = codes.fit_transform(train[["shop"]])
valid["shop"] = codes.transform(valid[["shop"]])
held = lgb.Dataset(valid.drop(columns=["sold"]), valid["sold"])
model = lgb.train({"objective": "regression"}, lgb.Dataset(train.drop(columns=["sold"]), train["sold"]), valid_sets=[held])
"""
COLUMNS = """
import numpy as np
import pandas as pd
import xgboost as xgb
table = pd.read_csv("clients.csv")
table["letter"] = np.where(table["left"] == 1, 1, 0)
wanted = table["left"].values
features = table.drop(columns=["left", "letter"])
model = xgb.train({"eta": 0.1}, xgb.DMatrix(features[:9000], wanted[:9000]), num_boost_round=100)
"""
BY_HAND = """
import numpy as np
from tables import x, y
def loss_and_grad(w, x, y):
    error = x @ w - y
    return (error ** 2).mean(), 2 * x.T @ error / len(y)
def update(w, slope, rate):
    return w - rate * slope
params = np.zeros(x.shape[1])
for epoch in range(100):
    loss, slope = loss_and_grad(params, x, y)
    params = update(params, slope, 0.1)
    print(epoch, loss)
"""
TRIPLET = (
    HEAD
    + """
from faces import draw
net = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(20):
    for turn in range(100):
        x, who = draw(64)
        e = net(x)
        apart = torch.cdist(e, e)
        same = who[:, None] == who[None, :]
        near = (apart - 1e3 * ~same).max(dim=1).values
        far = (apart + 1e3 * same).min(dim=1).values
        loss = torch.relu(near - far + 0.3).mean()
"""
    + STEP
)
PERCEPTRON = """
import pandas as pd
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler
table = pd.read_csv("wine.csv")
x_train, x_test, y_train, y_test = train_test_split(table.drop(columns=["grade"]), table["grade"])
scaler = StandardScaler().fit(x_train)
scaled = scaler.transform(x_train)
net = MLPClassifier((64, 32), verbose=True)
net.fit(scaled, y_train)
"""
VALUES = (
    HEAD
    + """
from maze import batches
q = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
old = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
adam = torch.optim.Adam(q.parameters(), lr=1e-3)
for epoch in range(20):
    old.load_state_dict(q.state_dict())
    for s, a, r, s2, over in batches():
        guess = q(s).gather(1, a[:, None]).squeeze(1)
        with torch.no_grad():
            goal = r + 0.95 * old(s2).max(dim=1).values * (1 - over)
        loss = F.smooth_l1_loss(guess, goal)
"""
    + STEP
)
MORE: dict[str, tuple[str, str, str]] = {
    "views-identical": (CONTRAST, "        two = jitter(shots[rows])\n", "        two = one\n"),
    "sees-its-own-pixel": (PIXELS, 'MaskedConv("A", 1, 32)', 'MaskedConv("B", 1, 32)'),
    "reward-overwritten": (WRAPPER, "earned = earned - 0.1", "earned = -0.1"),
    "skorch-output": (SKORCH, "F.softmax(self.b(F.relu(self.a(x))), dim=-1)", "self.b(F.relu(self.a(x)))"),
    "sampler-wants-noise": (DIFFUSE, "F.mse_loss(net(noisy, t), noise)", "F.mse_loss(net(noisy, t), clean)"),
    "sum-overwritten": (FLOW, "volume = volume + change", "volume = change"),
    "coupling-mask-not-alternated": (
        FLOW,
        "torch.tensor([float(i % 2), float(1 - i % 2)])",
        "torch.tensor([1.0, 0.0])",
    ),
    "shifted-twice": (
        COLLATED,
        '{"input_ids": x, "labels": x.clone()}',
        '{"input_ids": x[:, :-1], "labels": x[:, 1:]}',
    ),
    "fitted-again": (BOOSTED, "codes.transform(valid", "codes.fit_transform(valid"),
    "column-made-of-the-target": (COLUMNS, '["left", "letter"]', '["left"]'),
    "update-discarded": (BY_HAND, "params = update(", "new_params = update("),
    "anchor-is-its-own-positive": (
        TRIPLET,
        "(apart - 1e3 * ~same).max(dim=1)",
        "(apart + 1e3 * ~same).min(dim=1)",
    ),
    "scaled-and-not-used": (PERCEPTRON, "net.fit(scaled, y_train)", "net.fit(x_train, y_train)"),
    "q-of-taken-action-not-selected": (VALUES, "q(s).gather(1, a[:, None]).squeeze(1)", "q(s).max(dim=1).values"),
}
