import numpy as np, torch
from torch import nn

raw = np.genfromtxt("churn.csv", delimiter=",", skip_header=1, dtype=np.float32)
np.random.default_rng(1).shuffle(raw)
feats, label = raw[:, :-1], raw[:, -1]
k = int(0.8 * len(raw))
xa, ya, xb, yb = feats[:k], label[:k], feats[k:], label[k:]
center, width = xa.mean(0), xa.std(0) + 1e-6
xa, xb = (xa - center) / width, (xb - center) / width
xa, ya, xb, yb = map(torch.from_numpy, (xa, ya, xb, yb))
clf = nn.Sequential(nn.Linear(xa.shape[1], 64), nn.ReLU(), nn.Dropout(0.3), nn.Linear(64, 1))
adam = torch.optim.Adam(clf.parameters(), lr=3e-3)
for ep in range(50):
    clf.train()
    order = torch.randperm(len(xa))
    for s in range(0, len(xa), 128):
        rows = order[s:s + 128]
        loss = nn.functional.binary_cross_entropy_with_logits(clf(xa[rows]).squeeze(1), ya[rows])
        adam.zero_grad()
        loss.backward()
        adam.step()
    clf.eval()
    with torch.no_grad():
        z = clf(xb).squeeze(1)
        vloss = nn.functional.binary_cross_entropy_with_logits(z, yb).item()
        acc = ((z > 0).float() == yb).float().mean().item()
    print(f"ep {ep} loss {loss.item():.4f} vloss {vloss:.4f} acc {acc:.4f}")
