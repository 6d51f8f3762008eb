import math, random
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import Dataset, DataLoader

CLS, SEP, PAD, MASK, V = 1, 2, 0, 3, 12000


class Corpus(Dataset):
    def __init__(self, path, length=64, prob=0.15):
        self.rows = [list(map(int, line.split())) for line in open(path)]
        self.length, self.prob = length, prob

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, k):
        ids = [CLS] + self.rows[k][: self.length - 2] + [SEP]
        inp, lab = [], []
        for t in ids:
            if random.random() < self.prob and t not in (CLS, SEP):
                inp.append(MASK)
                lab.append(t)
            else:
                inp.append(t)
                lab.append(-100)
        fill = self.length - len(inp)
        return torch.tensor(inp + [PAD] * fill), torch.tensor(lab + [-100] * fill)


class SelfAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

    def forward(self, x, pad):
        b, t, d = x.shape
        q, k, v = (f(x).view(b, t, self.h, d // self.h).transpose(1, 2) for f in (self.q, self.k, self.v))
        w = (q @ k.transpose(-1, -2) / math.sqrt(d // self.h)).masked_fill(pad[:, None, None], -1e9).softmax(-1)
        return self.o((w @ v).transpose(1, 2).reshape(b, t, d))


class Bert(nn.Module):
    def __init__(self, d=256, n=6):
        super().__init__()
        self.word, self.place = nn.Embedding(V, d, padding_idx=PAD), nn.Embedding(64, d)
        self.att = nn.ModuleList(SelfAttention(d, 8) for _ in range(n))
        self.ff = nn.ModuleList(nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1)) for _ in range(n))
        self.n1 = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.n2 = nn.ModuleList(nn.LayerNorm(d) for _ in range(n))
        self.out = nn.Linear(d, V)

    def forward(self, ids):
        x = self.word(ids) + self.place(torch.arange(ids.shape[1], device=ids.device))
        for a, f, n1, n2 in zip(self.att, self.ff, self.n1, self.n2):
            x = x + a(n1(x), ids == PAD)
            x = x + f(n2(x))
        return self.out(x)


def epoch(net, loader, opt=None):
    net.train(opt is not None)
    tot = 0.0
    for ids, lab in loader:
        logits = net(ids.cuda())
        loss = F.cross_entropy(logits.transpose(1, 2), lab.cuda())
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
        tot += loss.item()
    return tot / len(loader)


bert = Bert().cuda()
adam = torch.optim.AdamW(bert.parameters(), lr=1e-4, weight_decay=0.01)
train, dev = DataLoader(Corpus("tr.txt"), 128, shuffle=True), DataLoader(Corpus("dv.txt"), 128)
for e in range(40):
    a = epoch(bert, train, adam)
    with torch.no_grad():
        b = epoch(bert, dev)
    print(f"[{e}] mlm {a:.3f} dev {b:.3f}")
