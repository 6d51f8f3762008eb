import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

rng = np.random.default_rng(0)
ratings = np.load("interactions.npy")
n_users, n_items = ratings[:, 0].max() + 1, ratings[:, 1].max() + 1
rng.shuffle(ratings)
split = int(0.9 * len(ratings))
train, test = ratings[:split], ratings[split:]
seen = [set() for _ in range(n_users)]
for u, i in train:
    seen[u].add(i)


class BPR(nn.Module):
    def __init__(self, dim=64):
        super().__init__()
        self.user = nn.Embedding(n_users, dim)
        self.item = nn.Embedding(n_items, dim)
        nn.init.normal_(self.user.weight, std=0.01)
        nn.init.normal_(self.item.weight, std=0.01)

    def score(self, u, i):
        return (self.user(u) * self.item(i)).sum(-1)

    def forward(self, u, pos, neg):
        return self.score(u, pos), self.score(u, neg)


def negatives(users):
    out = rng.integers(0, n_items, len(users))
    for k, u in enumerate(users):
        while out[k] in seen[u]:
            out[k] = rng.integers(0, n_items)
    return out


model = BPR()
opt = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-6)
for epoch in range(30):
    order = rng.permutation(len(train))
    total = 0.0
    for start in range(0, len(train), 1024):
        rows = train[order[start:start + 1024]]
        neg = negatives(rows[:, 0])
        u, i, j = torch.as_tensor(rows[:, 0]), torch.as_tensor(rows[:, 1]), torch.as_tensor(neg)
        pos_s, neg_s = model(u, i, j)
        loss = -F.logsigmoid(pos_s - neg_s).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    with torch.no_grad():
        u, i = torch.as_tensor(test[:, 0]), torch.as_tensor(test[:, 1])
        rank = (model.user(u) @ model.item.weight.T).argsort(dim=1, descending=True)[:, :10]
        hit = (rank == i.unsqueeze(1)).any(1).float().mean().item()
    print(f"epoch {epoch} bpr {total:.3f} hit@10 {hit:.4f}")
