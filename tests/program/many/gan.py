import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms, utils

nz = 64
G = nn.Sequential(nn.Linear(nz, 256), nn.ReLU(), nn.Linear(256, 784), nn.Tanh())
D = nn.Sequential(nn.Linear(784, 256), nn.LeakyReLU(0.2), nn.Linear(256, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=2e-4, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=2e-4, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.5,), (0.5,))])
loader = DataLoader(datasets.MNIST("data", transform=tf, download=True), batch_size=64, shuffle=True, drop_last=True)

for epoch in range(50):
    for i, (real, _) in enumerate(loader):
        real = real.view(real.size(0), -1)
        n = real.size(0)
        ones, zeros = torch.ones(n, 1), torch.zeros(n, 1)
        fake = G(torch.randn(n, nz))
        d_loss = bce(D(real), ones) + bce(D(fake.detach()), zeros)
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        g_loss = bce(D(fake), ones)
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
    print(f"[{epoch}] d_loss {d_loss.item():.3f} g_loss {g_loss.item():.3f}")
    with torch.no_grad():
        utils.save_image(G(torch.randn(16, nz)).view(-1, 1, 28, 28), f"out/{epoch}.png")
