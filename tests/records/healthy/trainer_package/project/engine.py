import torch

from project.data import loaders
from project.ema import EMA
from project.net import Net


class Engine:
    def __init__(self, cfg):
        for key, value in vars(cfg).items():
            setattr(self, key, value)
        self.net = Net()
        self.train_loader, self.val_loader = loaders(self.batch_size)
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.lr)
        self.scheduler = self.build_scheduler()
        self.ema = EMA(self.net, self.ema_decay)
        self.start = 0
        if self.resume:
            self.load(self.resume)

    def build_scheduler(self):
        warm = torch.optim.lr_scheduler.LinearLR(self.optimizer, 0.1, total_iters=self.warmup_epochs)
        cosine = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, self.epochs - self.warmup_epochs)
        return torch.optim.lr_scheduler.SequentialLR(self.optimizer, [warm, cosine], milestones=[self.warmup_epochs])

    def load(self, path):
        state = torch.load(path)
        self.net.load_state_dict(state["net"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        self.ema.load_state_dict(state["ema"])
        self.start = state["epoch"] + 1

    def save(self, epoch):
        torch.save(
            {
                "net": self.net.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "scheduler": self.scheduler.state_dict(),
                "ema": self.ema.state_dict(),
                "epoch": epoch,
            },
            f"epoch_{epoch}.pt",
        )

    def train_one(self, batch):
        x, y = batch
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.net.parameters(), self.grad_clip)
        self.optimizer.step()
        self.ema.update(self.net)
        return loss.item()

    @torch.no_grad()
    def evaluate(self):
        self.net.eval()
        hits = [(self.ema.shadow(x).argmax(1) == y).float().mean() for x, y in self.val_loader]
        self.net.train()
        return sum(hits) / len(hits)

    def fit(self):
        self.net.train()
        for epoch in range(self.start, self.epochs):
            for batch in self.train_loader:
                self.train_one(batch)
            self.scheduler.step()
            print(epoch, self.evaluate())
            self.save(epoch)
