from dataclasses import dataclass
import numpy as np, pandas as pd, torch
from torch import nn
from torch.utils.data import Dataset, DataLoader


@dataclass
class HP:
    dim: int = 32
    lr: float = 1e-3
    epochs: int = 20
    bs: int = 2048
    neg: int = 4


hp = HP()
df = pd.read_csv("ratings.csv").sort_values("timestamp")
n_u, n_i = df.user.max() + 1, df.item.max() + 1
tail = df.groupby("user").tail(1).index
test_df, train_df = df.loc[tail], df.drop(tail)
owned = train_df.groupby("user")["item"].apply(set).to_dict()


class Implicit(Dataset):
    def __init__(self, frame, negatives):
        self.u, self.i = frame.user.to_numpy(), frame.item.to_numpy()
        self.k = negatives

    def __len__(self):
        return len(self.u) * (1 + self.k)

    def __getitem__(self, n):
        row = n // (1 + self.k)
        user = self.u[row]
        if n % (1 + self.k) == 0:
            return user, self.i[row], 1.0
        j = np.random.randint(n_i)
        while j in owned[user]:
            j = np.random.randint(n_i)
        return user, j, 0.0


class NeuMF(nn.Module):
    def __init__(self):
        super().__init__()
        self.ue, self.ie = nn.Embedding(n_u, hp.dim), nn.Embedding(n_i, hp.dim)
        self.mlp = nn.Sequential(nn.Linear(2 * hp.dim, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 1))

    def forward(self, u, i):
        return self.mlp(torch.cat([self.ue(u), self.ie(i)], -1)).squeeze(-1)


net = NeuMF()
opt = torch.optim.Adam(net.parameters(), lr=hp.lr)
bce = nn.BCEWithLogitsLoss()
loader = DataLoader(Implicit(train_df, hp.neg), batch_size=hp.bs, shuffle=True, num_workers=4)
for ep in range(hp.epochs):
    net.train()
    acc = 0.0
    for u, i, lab in loader:
        opt.zero_grad()
        err = bce(net(u, i), lab.float())
        err.backward()
        opt.step()
        acc += float(err)
    net.eval()
    hits = 0
    with torch.no_grad():
        for u, i in zip(test_df.user, test_df.item):
            cand = torch.tensor([i, *np.random.randint(0, n_i, 99)])
            rank = net(torch.full((100,), u), cand).argsort(descending=True)
            hits += int((cand[rank[:10]] == i).any())
    print({"epoch": ep, "loss": acc / len(loader), "hr@10": hits / len(test_df)})
