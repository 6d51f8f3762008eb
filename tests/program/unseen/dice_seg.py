import glob
import albumentations as A
import cv2
import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, DataLoader
from sklearn.model_selection import train_test_split
from models import build_unet


class Polyps(Dataset):
    def __init__(self, files, tf):
        self.files, self.tf = files, tf

    def __len__(self):
        return len(self.files)

    def __getitem__(self, k):
        im = cv2.imread(self.files[k])[..., ::-1]
        gt = cv2.imread(self.files[k].replace("image", "mask"), 0)
        out = self.tf(image=im, mask=gt)
        x = torch.from_numpy(out["image"].transpose(2, 0, 1).copy()).float() / 255.0
        y = torch.from_numpy((out["mask"] > 127).astype(np.float32))[None]
        return x, y


strong = A.Compose([A.Resize(352, 352), A.HorizontalFlip(p=0.5), A.RandomBrightnessContrast(p=0.3)])
plain = A.Compose([A.Resize(352, 352)])
paths = sorted(glob.glob("kvasir/image/*.jpg"))
tr_files, va_files = train_test_split(paths, test_size=0.15, random_state=42)
tr = DataLoader(Polyps(tr_files, strong), 8, shuffle=True)
va = DataLoader(Polyps(va_files, plain), 8)


def dice(logit, gt, eps=1.0):
    p = logit.sigmoid().flatten(1)
    g = gt.flatten(1)
    return ((2 * (p * g).sum(1) + eps) / (p.sum(1) + g.sum(1) + eps)).mean()


net = build_unet().cuda()
opt = torch.optim.Adam(net.parameters(), 1e-4)
lrs = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="max", factor=0.5, patience=5)
bce = nn.BCEWithLogitsLoss()
top = 0.0
for ep in range(80):
    net.train()
    for x, y in tr:
        x, y = x.cuda(), y.cuda()
        z = net(x)
        loss = bce(z, y) + (1 - dice(z, y))
        opt.zero_grad()
        loss.backward()
        opt.step()
    net.eval()
    d = []
    with torch.no_grad():
        for x, y in va:
            d.append(dice(net(x.cuda()), y.cuda()).item())
    score = float(np.mean(d))
    lrs.step(score)
    if score > top:
        top = score
        torch.save({"model": net.state_dict(), "epoch": ep}, "best.pth")
    print(f"epoch {ep} loss {loss.item():.4f} val_dice {score:.4f}")
