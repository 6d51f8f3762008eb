import pytorch_lightning as pl
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision.datasets import FashionMNIST
from torchvision.transforms import ToTensor


class Data(pl.LightningDataModule):
    def __init__(self, bs=128):
        super().__init__()
        self.bs = bs

    def setup(self, stage=None):
        self.tr = FashionMNIST("d", train=True, transform=ToTensor())
        self.va = FashionMNIST("d", train=False, transform=ToTensor())

    def train_dataloader(self):
        return DataLoader(self.tr, self.bs, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.va, self.bs)


class LitVAE(pl.LightningModule):
    def __init__(self, zdim=16, kl_weight=1.0, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.GELU(), nn.Linear(512, 2 * zdim))
        self.decoder = nn.Sequential(nn.Linear(zdim, 512), nn.GELU(), nn.Linear(512, 784))

    def step(self, batch):
        x, _ = batch
        mean, logvar = self.encoder(x).chunk(2, dim=-1)
        z = mean + torch.randn_like(mean) * (0.5 * logvar).exp()
        rec = F.binary_cross_entropy_with_logits(self.decoder(z), x.flatten(1), reduction="none").sum(1).mean()
        kl = (-0.5 * (1 + logvar - mean ** 2 - logvar.exp()).sum(1)).mean()
        return rec, kl

    def training_step(self, batch, i):
        rec, kl = self.step(batch)
        self.log_dict({"rec": rec, "kl": kl})
        return rec + self.hparams.kl_weight * kl

    def validation_step(self, batch, i):
        rec, kl = self.step(batch)
        self.log("val_elbo_loss", rec + kl)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=self.hparams.lr)


stop = pl.callbacks.EarlyStopping("val_elbo_loss", mode="min", patience=10)
pl.Trainer(max_epochs=100, callbacks=[stop]).fit(LitVAE(), datamodule=Data())
