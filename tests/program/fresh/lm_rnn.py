import torch
from torch import nn

text = open("wiki.txt").read()
chars = sorted(set(text))
lookup = {c: n for n, c in enumerate(chars)}
ids = torch.tensor([lookup[c] for c in text])
edge = int(len(ids) * 0.95)
fit_ids, dev_ids = ids[:edge], ids[edge:]
SEQ, BATCH = 100, 50


class CharRNN(nn.Module):
    def __init__(self, n, width=512):
        super().__init__()
        self.emb = nn.Embedding(n, width)
        self.rnn = nn.LSTM(width, width, 2, dropout=0.3, batch_first=True)
        self.top = nn.Linear(width, n)

    def forward(self, x, state=None):
        y, state = self.rnn(self.emb(x), state)
        return self.top(y), state


def sample_windows(source):
    at = torch.randint(0, len(source) - SEQ - 1, (BATCH,))
    inputs = torch.stack([source[k:k + SEQ] for k in at])
    answers = torch.stack([source[k + 1:k + SEQ + 1] for k in at])
    return inputs, answers


net = CharRNN(len(chars))
crit = nn.CrossEntropyLoss()
optim = torch.optim.RMSprop(net.parameters(), lr=2e-3)
for turn in range(8000):
    net.train()
    inputs, answers = sample_windows(fit_ids)
    logits, _ = net(inputs)
    cost = crit(logits.reshape(-1, len(chars)), answers.reshape(-1))
    optim.zero_grad()
    cost.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 5)
    optim.step()
    if turn % 100 == 0:
        net.eval()
        with torch.no_grad():
            inputs, answers = sample_windows(dev_ids)
            dev = crit(net(inputs)[0].reshape(-1, len(chars)), answers.reshape(-1)).item()
        print(f"{turn} fit {cost.item():.3f} dev {dev:.3f}")
