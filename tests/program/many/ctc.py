import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from speechset import SpeechSet, collate, decode_greedy, cer

class Acoustic(nn.Module):
    def __init__(self, mels=80, hidden=256, vocab=29):
        super().__init__()
        self.rnn = nn.LSTM(mels, hidden, num_layers=3, bidirectional=True, batch_first=True, dropout=0.1)
        self.fc = nn.Linear(2 * hidden, vocab)

    def forward(self, x):
        h, _ = self.rnn(x)
        return self.fc(h).log_softmax(dim=-1)

def run(model, loader, ctc, opt=None):
    total = 0.0
    for feats, feat_lens, labels, label_lens in loader:
        logp = model(feats)
        loss = ctc(logp.transpose(0, 1), labels, feat_lens, label_lens)
        if opt is not None:
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            opt.step()
        total += loss.item()
    return total / len(loader)

def main():
    train_dl = DataLoader(SpeechSet("train"), 16, shuffle=True, collate_fn=collate)
    dev_dl = DataLoader(SpeechSet("dev"), 16, collate_fn=collate)
    model = Acoustic()
    ctc = nn.CTCLoss(blank=0, zero_infinity=True)
    opt = torch.optim.Adam(model.parameters(), lr=3e-4)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", patience=2)
    for ep in range(40):
        model.train()
        tr = run(model, train_dl, ctc, opt)
        model.eval()
        with torch.no_grad():
            dv = run(model, dev_dl, ctc)
        plateau.step(dv)
        print(f"{ep}\t{tr:.4f}\t{dv:.4f}\t{opt.param_groups[0]['lr']:.2e}")

if __name__ == "__main__":
    main()
