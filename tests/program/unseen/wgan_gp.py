import argparse
import torch
from torch import nn, autograd
from torch.utils.data import DataLoader
import torchvision.datasets as dset
import torchvision.transforms as T

ap = argparse.ArgumentParser()
ap.add_argument("--critic-iters", type=int, default=5)
ap.add_argument("--lam", type=float, default=10.0)
ap.add_argument("--epochs", type=int, default=100)
ap.add_argument("--lr", type=float, default=1e-4)
opt = ap.parse_args()


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(128, 4 * 4 * 256)
        self.up = nn.Sequential(nn.ConvTranspose2d(256, 128, 4, 2, 1), nn.BatchNorm2d(128), nn.ReLU(),
                                nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
                                nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.up(self.fc(z).view(-1, 256, 4, 4))


critic = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128 * 64, 1))
gen = Generator()
opt_c = torch.optim.Adam(critic.parameters(), lr=opt.lr, betas=(0.0, 0.9))
opt_g = torch.optim.Adam(gen.parameters(), lr=opt.lr, betas=(0.0, 0.9))


def penalty(real, fake):
    eps = torch.rand(real.size(0), 1, 1, 1)
    mix = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mix)
    grad = autograd.grad(score, mix, torch.ones_like(score), create_graph=True)[0]
    return ((grad.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


tf = T.Compose([T.Resize(32), T.ToTensor(), T.Normalize((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))])
dl = DataLoader(dset.CIFAR10(".", transform=tf, download=True), batch_size=64, shuffle=True, drop_last=True)
it = 0
for ep in range(opt.epochs):
    for real, _ in dl:
        fake = gen(torch.randn(64, 128)).detach()
        loss_c = critic(fake).mean() - critic(real).mean() + opt.lam * penalty(real, fake)
        opt_c.zero_grad()
        loss_c.backward()
        opt_c.step()
        it += 1
        if it % opt.critic_iters == 0:
            loss_g = -critic(gen(torch.randn(64, 128))).mean()
            opt_g.zero_grad()
            loss_g.backward()
            opt_g.step()
            print(f"{it} W {-loss_c.item():.3f} G {loss_g.item():.3f}")
