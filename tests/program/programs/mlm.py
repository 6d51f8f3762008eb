import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

VOCAB, LEN, D, LAYERS, HEADS = 8000, 128, 256, 4, 4
PAD_ID, MASK_ID = 0, 4
MASK_RATE = 0.15


class Lines(Dataset):
    def __init__(self, path):
        self.ids = torch.load(path)

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i]


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tok = nn.Embedding(VOCAB, D, padding_idx=PAD_ID)
        self.pos = nn.Parameter(torch.randn(LEN, D) * 0.02)
        layer = nn.TransformerEncoderLayer(D, HEADS, 4 * D, dropout=0.1, batch_first=True, norm_first=True)
        self.enc = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(D, VOCAB)

    def forward(self, ids):
        h = self.tok(ids) + self.pos[: ids.size(1)]
        h = self.enc(h, src_key_padding_mask=ids == PAD_ID)
        return self.head(h)


def corrupt(ids):
    labels = ids.clone()
    chosen = (torch.rand(ids.shape) < MASK_RATE) & (ids != PAD_ID)
    labels[~chosen] = -100
    noisy = ids.clone()
    noisy[chosen & (torch.rand(ids.shape) < 0.8)] = MASK_ID
    return noisy, labels


def main():
    train = DataLoader(Lines("train.pt"), batch_size=64, shuffle=True)
    val = DataLoader(Lines("val.pt"), batch_size=64)
    model = Encoder()
    opt = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    steps = 0
    for epoch in range(10):
        model.train()
        for ids in train:
            noisy, labels = corrupt(ids)
            logits = model(noisy)
            loss = F.cross_entropy(logits.view(-1, VOCAB), labels.view(-1), ignore_index=-100)
            opt.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            steps += 1
            if steps % 50 == 0:
                print(f"step {steps} mlm_loss {loss.item():.4f}")
        model.eval()
        total, count = 0.0, 0
        with torch.no_grad():
            for ids in val:
                noisy, labels = corrupt(ids)
                total += F.cross_entropy(model(noisy).view(-1, VOCAB), labels.view(-1)).item()
                count += 1
        print(f"epoch {epoch} val_mlm_loss {total / count:.4f}")


if __name__ == "__main__":
    main()
