import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader
from pairs import CaptionPairs, make_tokenizer


class Dual(nn.Module):
    def __init__(self, vocab, dim=256):
        super().__init__()
        self.image = torchvision.models.resnet50(num_classes=dim)
        self.words = nn.Embedding(vocab, dim)
        self.text = nn.GRU(dim, dim, batch_first=True)
        self.log_scale = nn.Parameter(torch.tensor(2.659))

    def forward(self, img, cap):
        i = F.normalize(self.image(img), dim=-1)
        _, h = self.text(self.words(cap))
        t = F.normalize(h[-1], dim=-1)
        return self.log_scale.exp() * i @ t.T


def both_ways(sim):
    want = torch.arange(sim.size(0), device=sim.device)
    return (F.cross_entropy(sim, want) + F.cross_entropy(sim.T, want)) / 2


def fit(cfg):
    tok = make_tokenizer()
    train = DataLoader(CaptionPairs("train", tok), cfg["batch"], shuffle=True, drop_last=True)
    val = DataLoader(CaptionPairs("val", tok), cfg["batch"], drop_last=True)
    net = Dual(len(tok)).cuda()
    opt = torch.optim.AdamW(net.parameters(), lr=cfg["lr"], weight_decay=0.2)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=cfg["lr"], total_steps=cfg["epochs"] * len(train))
    best = 0.0
    for e in range(cfg["epochs"]):
        net.train()
        for img, cap in train:
            loss = both_ways(net(img.cuda(), cap.cuda()))
            opt.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        net.eval()
        right = n = 0
        with torch.no_grad():
            for img, cap in val:
                sim = net(img.cuda(), cap.cuda())
                right += (sim.argmax(dim=1).cpu() == torch.arange(sim.size(0))).sum().item()
                n += sim.size(0)
        acc = right / n
        if acc > best:
            best = acc
            torch.save(net.state_dict(), "dual.pt")
        print(f"epoch {e}: loss {loss.item():.3f} top1 {acc:.3f}")


if __name__ == "__main__":
    fit({"batch": 256, "lr": 5e-4, "epochs": 30})
