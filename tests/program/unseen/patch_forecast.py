import numpy as np
import torch
from torch import nn

rng = np.random.RandomState(7)
L, H, P, D = 96, 24, 8, 64
x_all = np.load("ett.npy").astype(np.float32)
n_train, n_val = int(len(x_all) * 0.6), int(len(x_all) * 0.2)
tr, va, te = x_all[:n_train], x_all[n_train:n_train + n_val], x_all[n_train + n_val:]
m, s = tr.mean(0), tr.std(0)
tr, va, te = (tr - m) / s, (va - m) / s, (te - m) / s


def draw(arr, k):
    starts = rng.randint(0, len(arr) - L - H, size=k)
    past = np.stack([arr[b:b + L, 0] for b in starts])
    future = np.stack([arr[b + L:b + L + H, 0] for b in starts])
    return torch.from_numpy(past), torch.from_numpy(future)


class PatchTransformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(P, D)
        self.position = nn.Parameter(torch.zeros(L // P, D))
        layer = nn.TransformerEncoderLayer(D, 4, 128, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 3)
        self.head = nn.Linear(D * (L // P), H)

    def forward(self, past):
        patches = past.unfold(1, P, P)
        h = self.encoder(self.embed(patches) + self.position)
        return self.head(h.flatten(1))


model = PatchTransformer()
opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
best, patience = float("inf"), 0
for step in range(20000):
    model.train()
    past, future = draw(tr, 64)
    loss = ((model(past) - future) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 200 == 0:
        model.eval()
        with torch.no_grad():
            past, future = draw(va, 512)
            err = ((model(past) - future) ** 2).mean().item()
        print(f"step {step} train {loss.item():.4f} val {err:.4f}")
        if err < best:
            best, patience = err, 0
            torch.save(model.state_dict(), "patch.pt")
        else:
            patience += 1
        if patience > 15:
            break
