import argparse

import torch
from torch import nn, optim

from faces import Discriminator, Generator, loader_for

parser = argparse.ArgumentParser()
parser.add_argument("--niter", type=int, default=25)
parser.add_argument("--lr", type=float, default=2e-4)
parser.add_argument("--beta1", type=float, default=0.5)
parser.add_argument("--nz", type=int, default=100)
parser.add_argument("--batchSize", type=int, default=64)
parser.add_argument("--netG", default="")
parser.add_argument("--outf", default=".")
opt = parser.parse_args()
print(opt)

netG, netD = Generator(opt.nz), Discriminator()
if opt.netG != "":
    netG.load_state_dict(torch.load(opt.netG))
criterion = nn.BCELoss()
optimizerD = optim.Adam(netD.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
optimizerG = optim.Adam(netG.parameters(), lr=opt.lr, betas=(opt.beta1, 0.999))
loader = loader_for(opt.batchSize)
for epoch in range(opt.niter):
    for i, (real, _) in enumerate(loader):
        netD.zero_grad()
        label = torch.full((real.size(0),), 1.0)
        errD_real = criterion(netD(real), label)
        errD_real.backward()
        noise = torch.randn(real.size(0), opt.nz, 1, 1)
        fake = netG(noise)
        errD_fake = criterion(netD(fake.detach()), label.fill_(0.0))
        errD_fake.backward()
        optimizerD.step()
        netG.zero_grad()
        errG = criterion(netD(fake), label.fill_(1.0))
        errG.backward()
        optimizerG.step()
        print(f"[{epoch}/{opt.niter}][{i}/{len(loader)}] {errD_real.item() + errD_fake.item():.4f} {errG.item():.4f}")
    torch.save(netG.state_dict(), f"{opt.outf}/netG_epoch_{epoch}.pth")
