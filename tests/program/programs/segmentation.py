import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms as T
from PIL import Image
import numpy as np
from pathlib import Path

NUM_CLASSES, EPOCHS = 21, 60
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


class Voc(Dataset):
    def __init__(self, split, augment):
        self.names = Path(f"lists/{split}.txt").read_text().split()
        self.augment = augment
        self.norm = T.Compose([T.ToTensor(), T.Normalize(MEAN, STD)])

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        img = Image.open(f"img/{self.names[i]}.jpg").convert("RGB").resize((256, 256))
        lab = np.array(Image.open(f"lab/{self.names[i]}.png").resize((256, 256), Image.NEAREST))
        x, y = self.norm(img), torch.from_numpy(lab).long()
        if self.augment and torch.rand(1).item() < 0.5:
            x, y = x.flip(-1), y.flip(-1)
        return x, y


def block(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1, self.d2, self.mid = block(3, 32), block(32, 64), block(64, 128)
        self.u2, self.u1 = block(192, 64), block(96, 32)
        self.head = nn.Conv2d(32, NUM_CLASSES, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(F.max_pool2d(a, 2))
        m = self.mid(F.max_pool2d(b, 2))
        u = self.u2(torch.cat([F.interpolate(m, scale_factor=2), b], 1))
        u = self.u1(torch.cat([F.interpolate(u, scale_factor=2), a], 1))
        return self.head(u)


train_dl = DataLoader(Voc("train", True), batch_size=16, shuffle=True)
val_dl = DataLoader(Voc("val", False), batch_size=16)
net = UNet().cuda()
criterion = nn.CrossEntropyLoss(ignore_index=255)
optim = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.PolynomialLR(optim, total_iters=EPOCHS, power=0.9)
best = 0.0
for epoch in range(EPOCHS):
    net.train()
    for x, y in train_dl:
        x, y = x.cuda(), y.cuda()
        loss = criterion(net(x), y)
        optim.zero_grad()
        loss.backward()
        optim.step()
    sched.step()
    net.eval()
    inter, union = torch.zeros(NUM_CLASSES), torch.zeros(NUM_CLASSES)
    with torch.no_grad():
        for x, y in val_dl:
            pred = net(x.cuda()).argmax(dim=1).cpu()
            for c in range(NUM_CLASSES):
                inter[c] += ((pred == c) & (y == c)).sum()
                union[c] += ((pred == c) | (y == c)).sum()
    miou = (inter / union.clamp(min=1)).mean().item()
    if miou > best:
        best = miou
        torch.save(net.state_dict(), "best.pt")
    print(f"epoch {epoch} loss {loss.item():.4f} miou {miou:.4f}")
