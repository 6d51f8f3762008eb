"""Small pictures of bars and blobs, with Lightning."""
import lightning as L
import torch
from lightning.pytorch.loggers import CSVLogger
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

L.seed_everything(0)
forms = torch.randn(10, 1, 12, 12, generator=torch.Generator().manual_seed(1))


def pictures(n):
    y = torch.randint(10, (n,))
    x = forms[y] + 4.0 * torch.randn(n, 1, 12, 12)
    return TensorDataset(x, y)


class Classifier(L.LightningModule):
    def __init__(self, lr=2e-3, weight_decay=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.features = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.Flatten()
        )
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(32 * 36, 10))

    def forward(self, x):
        return self.head(self.features(x))

    def training_step(self, batch, batch_idx):
        x, y = batch
        loss = F.cross_entropy(self(x), y)
        self.log("train_loss", loss, on_step=True, on_epoch=False)
        self.log("lr", self.optimizers().param_groups[0]["lr"], on_step=True)
        return loss

    def validation_step(self, batch, batch_idx):
        x, y = batch
        out = self(x)
        self.log("val_loss", F.cross_entropy(out, y))
        self.log("val_acc", (out.argmax(1) == y).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=10)
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


train = DataLoader(pictures(2500), batch_size=64, shuffle=True)
val = DataLoader(pictures(800), batch_size=200)
model = Classifier(lr=2e-3)
trainer = L.Trainer(
    max_epochs=10,
    accelerator="cpu",
    gradient_clip_val=1.0,
    log_every_n_steps=5,
    logger=CSVLogger("."),
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, train, val)
