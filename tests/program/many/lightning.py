import lightning as L
import torch
from torch import nn
import torch.nn.functional as F
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint
from torch.utils.data import DataLoader, random_split
from torchvision.datasets import MNIST
from torchvision import transforms

class Lit(L.LightningModule):
    def __init__(self, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU())
        self.head = nn.Linear(256, 10)

    def forward(self, x):
        return self.head(self.encoder(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        loss = F.cross_entropy(logits, y)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        logits = self(x)
        self.log("val_loss", F.cross_entropy(logits, y), prog_bar=True)
        self.log("val_acc", (logits.argmax(-1) == y).float().mean(), prog_bar=True)

    def configure_optimizers(self):
        opt = torch.optim.Adam(self.parameters(), lr=self.hparams.lr)
        sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=20)
        return {"optimizer": opt, "lr_scheduler": {"scheduler": sched, "interval": "epoch"}}

def main():
    L.seed_everything(1)
    full = MNIST("data", train=True, download=True, transform=transforms.ToTensor())
    train, val = random_split(full, [55000, 5000])
    model = Lit()
    trainer = L.Trainer(max_epochs=20, gradient_clip_val=1.0, callbacks=[EarlyStopping("val_loss", mode="min", patience=4), ModelCheckpoint(monitor="val_acc", mode="max")])
    trainer.fit(model, DataLoader(train, 128, shuffle=True), DataLoader(val, 256))

if __name__ == "__main__":
    main()
