import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

from corpus import load_pairs, src_vocab, tgt_vocab

PAD, BOS, EOS = 0, 1, 2
D, MAXLEN = 256, 100


def collate(pairs):
    src = pad_sequence([torch.tensor(s + [EOS]) for s, _ in pairs], batch_first=True, padding_value=PAD)
    tgt = pad_sequence([torch.tensor([BOS] + t + [EOS]) for _, t in pairs], batch_first=True, padding_value=PAD)
    return src, tgt


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.src_emb = nn.Embedding(len(src_vocab), D, padding_idx=PAD)
        self.tgt_emb = nn.Embedding(len(tgt_vocab), D, padding_idx=PAD)
        self.pos = nn.Embedding(MAXLEN, D)
        self.tf = nn.Transformer(D, 8, 3, 3, 1024, dropout=0.1, batch_first=True)
        self.out = nn.Linear(D, len(tgt_vocab))

    def forward(self, src, tgt):
        s = self.src_emb(src) + self.pos(torch.arange(src.size(1), device=src.device))
        t = self.tgt_emb(tgt) + self.pos(torch.arange(tgt.size(1), device=tgt.device))
        causal = self.tf.generate_square_subsequent_mask(tgt.size(1)).to(src.device)
        h = self.tf(s, t, tgt_mask=causal, src_key_padding_mask=src == PAD, tgt_key_padding_mask=tgt == PAD, memory_key_padding_mask=src == PAD)
        return self.out(h)


train_pairs, val_pairs = load_pairs("train"), load_pairs("valid")
train = DataLoader(train_pairs, 64, shuffle=True, collate_fn=collate)
valid = DataLoader(val_pairs, 64, collate_fn=collate)
model = Translator().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.98))
criterion = nn.CrossEntropyLoss(ignore_index=PAD, label_smoothing=0.1)


def run(loader, training):
    model.train(training)
    total = 0.0
    for src, tgt in loader:
        src, tgt = src.cuda(), tgt.cuda()
        with torch.set_grad_enabled(training):
            logits = model(src, tgt[:, :-1])
            loss = criterion(logits.reshape(-1, logits.size(-1)), tgt[:, 1:].reshape(-1))
        if training:
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        total += loss.item()
    return total / len(loader)


best = float("inf")
for epoch in range(20):
    tr, va = run(train, True), run(valid, False)
    if va < best:
        best = va
        torch.save(model.state_dict(), "nmt.pt")
    print(f"epoch {epoch} | train {tr:.3f} | valid {va:.3f}")
