import torch, torchvision
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms as tt

MEAN, STD = (0.49, 0.48, 0.45), (0.25, 0.24, 0.26)


class Engine:
    def __init__(self, lr=0.1, epochs=60, bs=128):
        noisy = tt.Compose([tt.RandomCrop(32, 4), tt.RandomHorizontalFlip(), tt.ToTensor(), tt.Normalize(MEAN, STD)])
        clean = tt.Compose([tt.ToTensor(), tt.Normalize(MEAN, STD)])
        self.fit_dl = DataLoader(torchvision.datasets.CIFAR100("c", train=True, transform=noisy), bs, shuffle=True)
        self.dev_dl = DataLoader(torchvision.datasets.CIFAR100("c", train=False, transform=clean), bs)
        self.model = torchvision.models.resnet18(num_classes=100).cuda()
        self.opt = torch.optim.SGD(self.model.parameters(), lr=lr, momentum=0.9, weight_decay=5e-4, nesterov=True)
        self.sched = torch.optim.lr_scheduler.CosineAnnealingLR(self.opt, T_max=epochs)
        self.scaler = torch.cuda.amp.GradScaler()
        self.epochs, self.best = epochs, 0.0
        self.ce = nn.CrossEntropyLoss(label_smoothing=0.1)

    def one(self, x, y):
        with torch.cuda.amp.autocast():
            loss = self.ce(self.model(x.cuda()), y.cuda())
        self.opt.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.opt)
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.opt)
        self.scaler.update()
        return loss.item()

    @torch.no_grad()
    def score(self):
        self.model.eval()
        good = sum((self.model(x.cuda()).argmax(1).cpu() == y).sum().item() for x, y in self.dev_dl)
        return good / len(self.dev_dl.dataset)

    def go(self):
        for e in range(self.epochs):
            self.model.train()
            losses = [self.one(x, y) for x, y in self.fit_dl]
            self.sched.step()
            acc = self.score()
            if acc > self.best:
                self.best = acc
                torch.save(self.model.state_dict(), "c100.pt")
            print(e, sum(losses) / len(losses), acc)


Engine().go()
