"""A fault and its healthy twin for each check of the played program: id, text, what is healthy in it, the fault in its place."""

from __future__ import annotations

from framework_twins import FRAMEWORKS
from more_twins import MORE
from research_twins import RESEARCH

HEAD = """
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset
"""
TABLE = (
    HEAD
    + """
import numpy as np
g = np.random.default_rng(3)
inputs = g.normal(size=(4000, 12))
answers = inputs[:, 0] * 2 + np.sin(inputs[:, 1])
answers = (answers - answers.mean()) / answers.std()
data = TensorDataset(torch.tensor(inputs).float(), torch.tensor(answers).float())
train = DataLoader(data, batch_size=64, shuffle=True)

class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(12, 64), nn.Linear(64, 1)

    def forward(self, row):
        hidden = F.relu(self.first(row))
        return self.last(hidden).squeeze(-1)

net = Regressor()
sgd = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(20):
    for row, wanted in train:
        sgd.zero_grad()
        error = F.mse_loss(net(row), wanted)
        error.backward()
        sgd.step()
"""
)
GAN = (
    HEAD
    + """
from pictures import Pictures
loader = DataLoader(Pictures("train"), batch_size=64, shuffle=True)
maker = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 784))
judge = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
of_maker = torch.optim.Adam(maker.parameters(), lr=2e-4)
of_judge = torch.optim.Adam(judge.parameters(), lr=2e-4)
for epoch in range(30):
    for real in loader:
        z = torch.randn(64, 64)
        made = maker(z)
        of_judge.zero_grad()
        judged = F.relu(1 - judge(real)).mean() + F.relu(1 + judge(made.detach())).mean()
        judged.backward()
        of_judge.step()
        of_maker.zero_grad()
        fooled = -judge(made).mean()
        fooled.backward()
        of_maker.step()
"""
)
VAE = (
    HEAD
    + """
from pictures import Pictures

class Auto(nn.Module):
    def __init__(self):
        super().__init__()
        self.inward = nn.Linear(784, 400)
        self.mu, self.logvar = nn.Linear(400, 20), nn.Linear(400, 20)
        self.outward = nn.Sequential(nn.Linear(20, 400), nn.ReLU(), nn.Linear(400, 784))

    def forward(self, x):
        h = F.relu(self.inward(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)
        return self.outward(z), mu, logvar

model = Auto()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    for x in DataLoader(Pictures("train"), batch_size=128, shuffle=True):
        out, mu, logvar = model(x)
        fit = F.mse_loss(out, x, reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        opt.zero_grad()
        (fit + kld).backward()
        opt.step()
"""
)
CONTRAST = (
    HEAD
    + """
from pictures import Pictures, augment
encoder = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64))
opt = torch.optim.AdamW(encoder.parameters(), lr=1e-3)
for epoch in range(10):
    for x in DataLoader(Pictures("train"), batch_size=256, shuffle=True, drop_last=True):
        one, two = F.normalize(encoder(augment(x)), dim=1), F.normalize(encoder(augment(x)), dim=1)
        right = torch.arange(x.size(0))
        loss = F.cross_entropy(one @ two.T / 0.1, right)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
)
STUDENT = (
    HEAD
    + """
from pictures import Pictures
big, small = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)), nn.Linear(784, 10)
big.load_state_dict(torch.load("big.pt"))
big.eval()
opt = torch.optim.Adam(small.parameters(), lr=1e-3)
for epoch in range(10):
    for x, y in DataLoader(Pictures("train"), batch_size=64, shuffle=True):
        with torch.no_grad():
            soft = (big(x) / 3).softmax(1)
        loss = 9 * F.kl_div((small(x) / 3).log_softmax(1), soft, reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
)
MASKED = (
    HEAD
    + """
from books import Books

class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(5000, 64), nn.Embedding(128, 64)
        self.mix = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2)
        self.top = nn.Linear(64, 5000)

    def forward(self, ids):
        return self.top(self.mix(self.words(ids) + self.places(torch.arange(ids.shape[1]))))

reader = Reader()
opt = torch.optim.AdamW(reader.parameters(), lr=3e-4)
for epoch in range(10):
    for ids in DataLoader(Books("train"), batch_size=32, shuffle=True):
        chosen = torch.rand(ids.shape) < 0.15
        asked = ids.masked_fill(~chosen, -100)
        seen = ids.masked_fill(chosen, 4)
        loss = F.cross_entropy(reader(seen).view(-1, 5000), asked.view(-1))
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
)
MASKS = (
    HEAD
    + """
from scans import Scans
net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 4, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(10):
    for scan, organ in DataLoader(Scans("train"), batch_size=8, shuffle=True):
        if torch.rand(()) < 0.5:
            scan, organ = scan.flip(-1), organ.flip(-1)
        loss = F.cross_entropy(net(scan), organ)
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
)
PREFERENCE = (
    HEAD
    + """
from pairs import Pairs

class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.core, self.top = nn.Embedding(900, 64), nn.GRU(64, 64, batch_first=True), nn.Linear(64, 900)

    def forward(self, ids):
        return self.top(self.core(self.words(ids))[0])

def score(model, ids, prompt_length):
    logp = F.log_softmax(model(ids[:, :-1]), -1)
    each = torch.gather(logp, 2, ids[:, 1:].unsqueeze(2)).squeeze(2)
    return each[:, prompt_length - 1:].sum(1)

policy, fixed = Policy(), Policy()
fixed.load_state_dict(policy.state_dict())
opt = torch.optim.AdamW(policy.parameters(), lr=1e-5)
for good, bad in DataLoader(Pairs(), batch_size=8, shuffle=True):
    with torch.no_grad():
        base = score(fixed, good, 20) - score(fixed, bad, 20)
    margin = score(policy, good, 20) - score(policy, bad, 20) - base
    loss = -F.logsigmoid(0.1 * margin).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)
CLASSES = (
    HEAD
    + """
from pictures import Pictures

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 3)
        self.fc1, self.fc2 = nn.Linear(32 * 30 * 30, 128), nn.Linear(128, 10)

    def forward(self, x):
        x = x / 255.0
        x = F.relu(self.conv(x)).flatten(1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
best = 0.0
for epoch in range(10):
    net.train()
    for x, y in DataLoader(Pictures("train"), batch_size=64, shuffle=True):
        opt.zero_grad()
        loss = F.nll_loss(F.log_softmax(net(x), 1), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in DataLoader(Pictures("val"), batch_size=64):
            right += (net(x).argmax(1) == y).sum().item()
    accuracy = right / 10_000
    best = max(best, accuracy)
    print("accuracy", accuracy)
"""
)
TEXT = (
    HEAD
    + """
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.core, self.top = nn.Embedding(900, 64), nn.LSTM(64, 64, batch_first=True), nn.Linear(64, 900)

    def forward(self, ids):
        return self.top(self.core(self.words(ids))[0])

ids = torch.load("ids.pt")
writer = Writer()
opt = torch.optim.AdamW(writer.parameters(), lr=1e-3)
for step in range(5000):
    start = torch.randint(0, len(ids) - 66, (1,)).item()
    given, wanted = ids[start:start + 64], ids[start + 1:start + 65]
    loss = F.cross_entropy(writer(given.unsqueeze(0)).view(-1, 900), wanted)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
)

TWINS: dict[str, tuple[str, str, str]] = {
    "best-so-far-kept-in-log": (CLASSES, 'print("accuracy", accuracy)', 'print("accuracy", best)'),
    "bias-kills-units": (
        CLASSES,
        "net = Net()\n",
        "net = Net()\nfor m in net.modules():\n    if isinstance(m, nn.Linear):\n        m.bias.data.fill_(-12.0)\n",
    ),
    "clip-to-nothing": (CLASSES, "net.parameters(), 1.0)", "net.parameters(), 1e-5)"),
    "features-cut-off": (TABLE, "hidden = F.relu(self.first(row))", "hidden = F.relu(self.first(row)).detach()"),
    "generator-without-noise": (GAN, "z = torch.randn(64, 64)", "z = torch.full((64, 64), 0.5)"),
    "grad-noise": (
        TABLE,
        "error.backward()\n",
        "error.backward()\n        for p in net.parameters():\n            p.grad.add_(torch.randn_like(p.grad) * 0.3)\n",
    ),
    "init-too-wide": (
        CLASSES,
        "net = Net()\n",
        "net = Net()\ndef start(m):\n    if isinstance(m, (nn.Conv2d, nn.Linear)):\n        nn.init.normal_(m.weight, 0.0, 2.0)\nnet.apply(start)\n",
    ),
    "input-is-constant": (TABLE, "F.mse_loss(net(row), wanted)", "F.mse_loss(net(torch.zeros_like(row)), wanted)"),
    "input-scaled-beyond": (CLASSES, "x = x / 255.0\n", "x = x / 255.0\n        x = (x - 120.0) / 58.0\n"),
    "kl-outweighs": (VAE, 'F.mse_loss(out, x, reduction="sum")', "F.mse_loss(out, x)"),
    "output-cannot-reach": (
        TABLE,
        "return self.last(hidden).squeeze(-1)",
        "return F.relu(self.last(hidden)).squeeze(-1)",
    ),
    "picture-turned-alone": (MASKS, "scan, organ = scan.flip(-1), organ.flip(-1)", "scan = scan.flip(-1)"),
    "positives-elsewhere": (CONTRAST, "torch.arange(x.size(0))", "torch.arange(x.size(0)).flip(0)"),
    "prompt-scored": (PREFERENCE, "each[:, prompt_length - 1:]", "each[:, :prompt_length - 1]"),
    "samples-one-by-one": (
        TABLE,
        "        sgd.zero_grad()\n",
        "        row = torch.stack([torch.tensor(row[i].tolist()) for i in range(len(row))])\n        sgd.zero_grad()\n",
    ),
    "shapes-spread": (TABLE, "self.last(hidden).squeeze(-1)", "self.last(hidden)"),
    "softmax-wrong-axis": (CLASSES, "F.log_softmax(net(x), 1)", "F.log_softmax(net(x), 0)"),
    "targets-skip": (TEXT, "ids[start + 1:start + 65]", "ids[start + 2:start + 66]"),
    "teacher-negated": (STUDENT, "(big(x) / 3).softmax(1)", "(-big(x) / 3).softmax(1)"),
    "tokens-not-hidden": (MASKED, "reader(seen)", "reader(ids)"),
    "views-only-attract": (
        CONTRAST,
        "F.cross_entropy(one @ two.T / 0.1, right)",
        "-F.cosine_similarity(one, two).mean()",
    ),
    "adversarial-labels": (GAN, "fooled = -judge(made).mean()", "fooled = judge(made).mean()"),
}
TWINS.update(MORE)
TWINS.update(FRAMEWORKS)
TWINS.update(RESEARCH)
