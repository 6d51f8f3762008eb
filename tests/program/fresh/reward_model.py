import torch
from torch import nn
from torch.utils.data import DataLoader, random_split
from transformers import AutoModel, AutoTokenizer
from comparisons import Comparisons


class Scorer(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.body = AutoModel.from_pretrained(name)
        self.value = nn.Linear(self.body.config.hidden_size, 1)

    def forward(self, ids, mask):
        h = self.body(ids, attention_mask=mask).last_hidden_state
        return self.value(h[:, -1]).squeeze(-1)


tok = AutoTokenizer.from_pretrained("distilroberta-base")


def join(rows):
    win = tok([r["prompt"] + r["chosen"] for r in rows], padding=True, truncation=True, return_tensors="pt")
    lose = tok([r["prompt"] + r["rejected"] for r in rows], padding=True, truncation=True, return_tensors="pt")
    return win, lose


whole = Comparisons("pairs.jsonl")
first, held = random_split(whole, [0.9, 0.1], generator=torch.Generator().manual_seed(3))
fit_dl = DataLoader(first, 16, shuffle=True, collate_fn=join)
held_dl = DataLoader(held, 16, collate_fn=join)
model = Scorer("distilroberta-base")
opt = torch.optim.AdamW(model.parameters(), lr=1e-5)
for epoch in range(2):
    model.train()
    for win, lose in fit_dl:
        r_win = model(win["input_ids"], win["attention_mask"])
        r_lose = model(lose["input_ids"], lose["attention_mask"])
        loss = -nn.functional.logsigmoid(r_win - r_lose).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    model.eval()
    hits, n = 0, 0
    with torch.no_grad():
        for win, lose in held_dl:
            a, b = model(win["input_ids"], win["attention_mask"]), model(lose["input_ids"], lose["attention_mask"])
            hits += (a > b).sum().item()
            n += len(a)
    print(f"epoch {epoch} loss {loss.item():.4f} acc {hits / n:.3f}")
