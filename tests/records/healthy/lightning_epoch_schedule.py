import pytorch_lightning as pl
import torch


class Model(pl.LightningModule):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.layer = torch.nn.Linear(32, 2)

    def training_step(self, batch, batch_idx):
        return self.layer(batch).sum()

    def configure_optimizers(self):
        opt = torch.optim.SGD(self.parameters(), lr=self.cfg.lr, momentum=0.9)
        return [opt], [torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=self.cfg.max_epochs)]
