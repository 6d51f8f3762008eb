import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
from torchvision import datasets, transforms

class VAE(nn.Module):
    def __init__(self, z=20):
        super().__init__()
        self.enc = nn.Linear(784, 400)
        self.mu = nn.Linear(400, z)
        self.logvar = nn.Linear(400, z)
        self.dec1 = nn.Linear(z, 400)
        self.dec2 = nn.Linear(400, 784)

    def encode(self, x):
        h = F.relu(self.enc(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        return torch.sigmoid(self.dec2(F.relu(self.dec1(z))))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, 784))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar

def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x.view(-1, 784), reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld

def main():
    train = DataLoader(datasets.MNIST("data", train=True, transform=transforms.ToTensor()), 128, shuffle=True)
    test = DataLoader(datasets.MNIST("data", train=False, transform=transforms.ToTensor()), 128)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 31):
        model.train()
        total = 0.0
        for data, _ in train:
            optimizer.zero_grad()
            recon, mu, logvar = model(data)
            loss = loss_function(recon, data, mu, logvar)
            loss.backward()
            total += loss.item()
            optimizer.step()
        model.eval()
        held = 0.0
        with torch.no_grad():
            for data, _ in test:
                recon, mu, logvar = model(data)
                held += loss_function(recon, data, mu, logvar).item()
        print(f"====> Epoch: {epoch} train {total / len(train.dataset):.4f} test {held / len(test.dataset):.4f}")

main()
