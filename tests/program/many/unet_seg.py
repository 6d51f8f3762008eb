import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.cuda.amp import GradScaler, autocast
from torch.utils.data import DataLoader
from mydata import CityScenes
from mymodels import UNet

def mean_iou(pred, target, classes, ignore=255):
    keep = target != ignore
    pred, target = pred[keep], target[keep]
    ious = []
    for c in range(classes):
        inter = ((pred == c) & (target == c)).sum()
        union = ((pred == c) | (target == c)).sum()
        if union > 0:
            ious.append((inter / union).item())
    return sum(ious) / max(len(ious), 1)

def poly(it, total, power=0.9):
    return (1 - it / total) ** power

def main(epochs=60, bs=8, lr=1e-2):
    device = torch.device("cuda")
    train_loader = DataLoader(CityScenes("train", augment=True), bs, shuffle=True, num_workers=4, drop_last=True)
    val_loader = DataLoader(CityScenes("val", augment=False), bs, num_workers=4)
    net = UNet(3, 19).to(device)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    opt = torch.optim.SGD(net.parameters(), lr=lr, momentum=0.9, weight_decay=1e-4)
    total = epochs * len(train_loader)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda it: poly(it, total))
    scaler = GradScaler()
    for epoch in range(epochs):
        net.train()
        for img, mask in train_loader:
            img, mask = img.to(device), mask.to(device)
            opt.zero_grad(set_to_none=True)
            with autocast():
                logits = net(img)
                loss = criterion(logits, mask)
            scaler.scale(loss).backward()
            scaler.unscale_(opt)
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            scaler.step(opt)
            scaler.update()
            sched.step()
        net.eval()
        scores = []
        with torch.no_grad():
            for img, mask in val_loader:
                pred = net(img.to(device)).argmax(1).cpu()
                scores.append(mean_iou(pred, mask, 19))
        print(f"epoch {epoch:03d} loss {loss.item():.4f} miou {sum(scores) / len(scores):.4f}")

if __name__ == "__main__":
    main()
