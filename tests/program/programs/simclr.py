import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, models, transforms

TEMP, EPOCHS, LR = 0.2, 200, 1e-3
aug = transforms.Compose([transforms.RandomResizedCrop(32), transforms.RandomHorizontalFlip(), transforms.ColorJitter(0.4, 0.4, 0.4, 0.1), transforms.ToTensor()])


class TwoViews:
    def __init__(self, tf):
        self.tf = tf

    def __call__(self, img):
        return self.tf(img), self.tf(img)


class SimCLR(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = models.resnet18(weights=None)
        self.backbone.fc = nn.Identity()
        self.proj = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 128))

    def forward(self, x):
        return self.proj(self.backbone(x))


def nt_xent(a, b, temp):
    z = F.normalize(torch.cat([a, b]), dim=1)
    sim = z @ z.T / temp
    sim.fill_diagonal_(-1e9)
    n = a.size(0)
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)]).to(sim.device)
    return F.cross_entropy(sim, target)


data = datasets.CIFAR10("data", train=True, transform=TwoViews(aug))
loader = DataLoader(data, 512, shuffle=True, drop_last=True)
model = SimCLR().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=1e-4)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS * len(loader))
for epoch in range(EPOCHS):
    for (v1, v2), _ in loader:
        loss = nt_xent(model(v1.cuda()), model(v2.cuda()), TEMP)
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
    print(f"epoch {epoch} loss {loss.item():.4f} lr {sched.get_last_lr()[0]:.6f}")
