import torch
import torch.nn as nn
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

device = "cuda" if torch.cuda.is_available() else "cpu"
Z, EPOCHS, BATCH, LR = 100, 30, 128, 2e-4


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.ConvTranspose2d(Z, 128, 7), nn.BatchNorm2d(128), nn.ReLU(),
            nn.ConvTranspose2d(128, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.ConvTranspose2d(64, 1, 4, 2, 1), nn.Tanh())

    def forward(self, z):
        return self.body(z)


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1),
                                  nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(128 * 49, 1))

    def forward(self, x):
        return self.body(x).squeeze(1)


tf = transforms.Compose([transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])
loader = DataLoader(datasets.MNIST("data", download=True, transform=tf), batch_size=BATCH, shuffle=True, drop_last=True)
G, D = Gen().to(device), Disc().to(device)
opt_g = torch.optim.Adam(G.parameters(), lr=LR, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(D.parameters(), lr=LR, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for epoch in range(EPOCHS):
    for x, _ in loader:
        x = x.to(device)
        n = x.size(0)
        z = torch.randn(n, Z, 1, 1, device=device)
        fake = G(z)
        d_real = D(x)
        d_fake = D(fake.detach())
        d_loss = bce(d_real, torch.ones(n, device=device)) + bce(d_fake, torch.zeros(n, device=device))
        opt_d.zero_grad()
        d_loss.backward()
        opt_d.step()
        g_loss = bce(D(fake), torch.ones(n, device=device))
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
    print(f"epoch {epoch} d_loss {d_loss.item():.4f} g_loss {g_loss.item():.4f}")
    torch.save(G.state_dict(), "g.pt")
