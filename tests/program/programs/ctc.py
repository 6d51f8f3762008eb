import string

import torch
import torch.nn as nn
import torchaudio
from torch.utils.data import DataLoader

CHARS = " '" + string.ascii_lowercase
char2id = {c: i + 1 for i, c in enumerate(CHARS)}
BLANK = 0
EPOCHS = 20


class Recognizer(nn.Module):
    def __init__(self, n_mels=80, hidden=256, n_out=len(CHARS) + 1):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv1d(n_mels, hidden, 5, stride=2, padding=2), nn.ReLU())
        self.rnn = nn.LSTM(hidden, hidden, num_layers=3, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(2 * hidden, n_out)

    def forward(self, feats):
        h = self.conv(feats).transpose(1, 2)
        h, _ = self.rnn(h)
        return self.fc(h).log_softmax(dim=-1)


mel = torchaudio.transforms.MelSpectrogram(n_mels=80)


def collate(batch):
    feats = [mel(w).squeeze(0).T.log1p() for w, *_ in batch]
    targets = [torch.tensor([char2id[c] for c in t.lower() if c in char2id]) for _, _, t, *_ in batch]
    f_len = torch.tensor([(f.size(0) + 1) // 2 for f in feats])
    t_len = torch.tensor([len(t) for t in targets])
    feats = nn.utils.rnn.pad_sequence(feats, batch_first=True).transpose(1, 2)
    return feats, torch.cat(targets), f_len, t_len


def greedy(logp):
    ids = logp.argmax(-1)
    out = []
    for row in ids:
        prev, text = -1, []
        for i in row.tolist():
            if i != prev and i != BLANK:
                text.append(CHARS[i - 1])
            prev = i
        out.append("".join(text))
    return out


train = DataLoader(torchaudio.datasets.LIBRISPEECH(".", "train-clean-100"), 16, shuffle=True, collate_fn=collate)
dev = DataLoader(torchaudio.datasets.LIBRISPEECH(".", "dev-clean"), 16, collate_fn=collate)
model = Recognizer().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
ctc = nn.CTCLoss(blank=BLANK, zero_infinity=True)
for epoch in range(EPOCHS):
    model.train()
    for feats, targets, f_len, t_len in train:
        logp = model(feats.cuda())
        loss = ctc(logp.transpose(0, 1), targets.cuda(), f_len, t_len)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
    model.eval()
    dev_loss = 0.0
    with torch.no_grad():
        for feats, targets, f_len, t_len in dev:
            logp = model(feats.cuda())
            dev_loss += ctc(logp.transpose(0, 1), targets.cuda(), f_len, t_len).item()
    print(f"epoch={epoch} loss={loss.item():.3f} dev_loss={dev_loss / len(dev):.3f} sample={greedy(logp)[0]}")
