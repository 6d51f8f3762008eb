import copy
import torch, torch.nn as nn, torch.nn.functional as F
import torchvision as tv
from torch.utils.data import DataLoader

augment = tv.transforms.Compose([tv.transforms.RandomResizedCrop(64, (0.3, 1.0)), tv.transforms.RandomHorizontalFlip(), tv.transforms.RandomGrayscale(0.2), tv.transforms.ToTensor()])


class Pair:
    def __call__(self, im):
        return augment(im), augment(im)


def head(i, o):
    return nn.Sequential(nn.Linear(i, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, o))


class Branch(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = tv.models.resnet18(num_classes=512)
        self.proj = head(512, 128)

    def forward(self, x):
        return self.proj(self.body(x))


online, predictor = Branch(), head(128, 128)
target = copy.deepcopy(online)
for w in target.parameters():
    w.requires_grad = False
optimizer = torch.optim.AdamW([*online.parameters(), *predictor.parameters()], lr=3e-4, weight_decay=1e-6)
images = DataLoader(tv.datasets.STL10("d", split="unlabeled", transform=Pair()), 256, shuffle=True, drop_last=True)


def regress(p, z):
    return 2 - 2 * F.cosine_similarity(p, z.detach(), dim=-1).mean()


m = 0.996
for epoch in range(100):
    total = 0.0
    for (a, b), _ in images:
        pa, pb = predictor(online(a)), predictor(online(b))
        with torch.no_grad():
            za, zb = target(a), target(b)
        loss = regress(pa, zb) + regress(pb, za)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        for wt, wo in zip(target.parameters(), online.parameters()):
            wt.data = m * wt.data + (1 - m) * wo.data
        total += loss.item()
    print(f"epoch {epoch:03d} loss {total / len(images):.4f}")
