import lightning as L
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, random_split
from torchvision import datasets, transforms


class LitNet(L.LightningModule):
    def __init__(self, lr=1e-3, max_epochs=30):
        super().__init__()
        self.save_hyperparameters()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.2), nn.Linear(256, 10))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        opt = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.hparams.max_epochs)
        return {"optimizer": opt, "lr_scheduler": sched}


full = datasets.FashionMNIST("data", train=True, download=True, transform=transforms.ToTensor())
train_set, val_set = random_split(full, [55000, 5000], generator=torch.Generator().manual_seed(0))
train_dl = DataLoader(train_set, batch_size=128, shuffle=True, num_workers=4)
val_dl = DataLoader(val_set, batch_size=256, num_workers=4)
stop = EarlyStopping(monitor="val_loss", mode="min", patience=5)
keep = ModelCheckpoint(monitor="val_acc", mode="max")
trainer = L.Trainer(max_epochs=30, callbacks=[stop, keep], gradient_clip_val=1.0)
trainer.fit(LitNet(lr=1e-3, max_epochs=30), train_dl, val_dl)
