import lightning as L
import torch
from torch import nn


class GAN(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.gen, self.disc = nn.Linear(8, 8), nn.Linear(8, 1)

    def training_step(self, batch, batch_idx):
        g_opt, d_opt = self.optimizers()
        fake = self.gen(torch.randn_like(batch))
        d_loss = self.disc(fake.detach()).mean() - self.disc(batch).mean()
        d_opt.zero_grad()
        self.manual_backward(d_loss)
        d_opt.step()
        g_loss = -self.disc(fake).mean()
        g_opt.zero_grad()
        self.manual_backward(g_loss)
        g_opt.step()

    def configure_optimizers(self):
        return torch.optim.Adam(self.gen.parameters()), torch.optim.Adam(self.disc.parameters())
