import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

BETA = 1.0


class VAE(nn.Module):
    def __init__(self, latent=20):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(784, 400), nn.ReLU())
        self.mu, self.logvar = nn.Linear(400, latent), nn.Linear(400, latent)
        self.dec = nn.Sequential(nn.Linear(latent, 400), nn.ReLU(), nn.Linear(400, 784))

    def encode(self, x):
        h = self.enc(x)
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        return self.dec(self.reparameterize(mu, logvar)), mu, logvar


def elbo(recon, x, mu, logvar):
    bce = F.binary_cross_entropy_with_logits(recon, x.view(-1, 784), reduction="sum") / x.size(0)
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp()) / x.size(0)
    return bce + BETA * kld, bce, kld


train_loader = DataLoader(datasets.MNIST("data", train=True, transform=transforms.ToTensor()), 128, shuffle=True)
test_loader = DataLoader(datasets.MNIST("data", train=False, transform=transforms.ToTensor()), 128)
model = VAE()
optimizer = optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(1, 21):
    model.train()
    for x, _ in train_loader:
        optimizer.zero_grad()
        recon, mu, logvar = model(x)
        loss, bce, kld = elbo(recon, x, mu, logvar)
        loss.backward()
        optimizer.step()
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for x, _ in test_loader:
            recon, mu, logvar = model(x)
            test_loss += elbo(recon, x, mu, logvar)[0].item()
    print(f"epoch {epoch} loss {loss.item():.3f} bce {bce.item():.3f} kld {kld.item():.3f} test {test_loss / len(test_loader):.3f}")
