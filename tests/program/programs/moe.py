import torch
import torch.nn as nn
import torch.nn.functional as F
import numpy as np

block_size, batch_size, dim, n_exp, top_k = 128, 32, 256, 8, 2
aux_weight, lr, max_iters, eval_every = 0.01, 3e-4, 5000, 250
data = np.fromfile("enwik8", dtype=np.uint8)
n = int(0.95 * len(data))
train_data, val_data = data[:n], data[n:]


def get_batch(split):
    src = train_data if split == "train" else val_data
    ix = torch.randint(len(src) - block_size - 1, (batch_size,))
    x = torch.stack([torch.from_numpy(src[i:i + block_size].astype(np.int64)) for i in ix])
    y = torch.stack([torch.from_numpy(src[i + 1:i + 1 + block_size].astype(np.int64)) for i in ix])
    return x, y


class MoE(nn.Module):
    def __init__(self):
        super().__init__()
        self.router = nn.Linear(dim, n_exp)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim)) for _ in range(n_exp)])

    def forward(self, x):
        probs = F.softmax(self.router(x), dim=-1)
        w, idx = probs.topk(top_k, dim=-1)
        w = w / w.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for e, expert in enumerate(self.experts):
            hit = (idx == e).float() * w
            out = out + expert(x) * hit.sum(-1, keepdim=True)
        load = F.one_hot(idx[..., 0], n_exp).float().mean((0, 1))
        aux = n_exp * (load * probs.mean((0, 1))).sum()
        return out, aux


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn = nn.MultiheadAttention(dim, 4, batch_first=True)
        self.moe = MoE()

    def forward(self, x):
        h = self.ln1(x)
        mask = torch.triu(torch.ones(x.size(1), x.size(1), dtype=torch.bool), 1)
        a, _ = self.attn(h, h, h, attn_mask=mask, need_weights=False)
        x = x + a
        m, aux = self.moe(self.ln2(x))
        return x + m, aux


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(256, dim), nn.Embedding(block_size, dim)
        self.blocks = nn.ModuleList([Block() for _ in range(4)])
        self.head = nn.Linear(dim, 256)

    def forward(self, idx):
        x = self.tok(idx) + self.pos(torch.arange(idx.size(1)))
        aux = 0.0
        for blk in self.blocks:
            x, a = blk(x)
            aux = aux + a
        return self.head(x), aux


model = LM()
optimizer = torch.optim.AdamW(model.parameters(), lr=lr)
for it in range(max_iters):
    if it % eval_every == 0:
        model.eval()
        with torch.no_grad():
            xv, yv = get_batch("val")
            val = F.cross_entropy(model(xv)[0].view(-1, 256), yv.view(-1)).item()
        print(f"iter {it}: val loss {val:.4f}")
        model.train()
    x, y = get_batch("train")
    logits, aux = model(x)
    loss = F.cross_entropy(logits.view(-1, 256), y.view(-1)) + aux_weight * aux
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
