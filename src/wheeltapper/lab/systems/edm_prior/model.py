"""A small U-Net with the preconditioning of EDM (Karras et al. 2022, table 1)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Two convolutions; the noise level and the domain set the gain and offset between them."""

    def __init__(self, inputs: int, channels: int, embedding: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(4, inputs), nn.GroupNorm(4, channels)
        self.conv1 = nn.Conv2d(inputs, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.affine = nn.Linear(embedding, 2 * channels)
        self.skip = nn.Conv2d(inputs, channels, 1) if inputs != channels else nn.Identity()

    def forward(self, x: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        gain, offset = self.affine(told)[:, :, None, None].chunk(2, 1)
        y = self.conv1(F.silu(self.norm1(x)))
        y = self.conv2(F.silu(self.norm2(y) * (1 + gain) + offset))
        return y + self.skip(x)


class UNet(nn.Module):
    def __init__(self, channels: int, num_blocks: int, domains: int) -> None:
        super().__init__()
        embedding = 2 * channels
        self.told = nn.Sequential(
            nn.Linear(3 + domains, embedding), nn.SiLU(), nn.Linear(embedding, embedding), nn.SiLU()
        )
        self.first = nn.Conv2d(4, channels, 3, padding=1)
        self.down = nn.ModuleList(Block(channels, channels, embedding) for _ in range(num_blocks))
        self.shrink = nn.Conv2d(channels, 2 * channels, 3, 2, 1)
        self.middle = nn.ModuleList(Block(2 * channels, 2 * channels, embedding) for _ in range(num_blocks))
        self.grow = nn.Conv2d(2 * channels, channels, 1)
        self.up = nn.ModuleList(
            Block(2 * channels if not i else channels, channels, embedding) for i in range(num_blocks)
        )
        self.last = nn.Conv2d(channels, 4, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def forward(self, x: torch.Tensor, noise: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        level = noise.flatten()[:, None]
        told = self.told(torch.cat([level, torch.sin(3 * level), torch.cos(3 * level), domain], 1))
        x = self.first(x)
        for block in self.down:
            x = block(x, told)
        y = self.shrink(x)
        for block in self.middle:
            y = block(y, told)
        y = F.interpolate(self.grow(y), scale_factor=2, mode="nearest")
        y = torch.cat([x, y], 1)
        for block in self.up:
            y = block(y, told)
        return self.last(F.silu(y))


class EDMPrecond(nn.Module):
    """D(x; sigma) = c_skip x + c_out F(c_in x; c_noise)"""

    def __init__(self, net: nn.Module, sigma_data: float) -> None:
        super().__init__()
        self.net, self.sigma_data = net, sigma_data

    def forward(self, x: torch.Tensor, sigma: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        sigma = sigma.view(-1, 1, 1, 1)
        both = (sigma**2 + self.sigma_data**2).sqrt()
        c_skip = self.sigma_data**2 / both**2
        c_out = sigma * self.sigma_data / both
        return c_skip * x + c_out * self.net(x / both, sigma.log() / 4, domain)


class VPPrecond(nn.Module):
    """D(x; sigma) = x - sigma F(x / sqrt(1 + sigma^2)), the network predicting the noise."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, x: torch.Tensor, sigma: torch.Tensor, domain: torch.Tensor) -> torch.Tensor:
        sigma = sigma.view(-1, 1, 1, 1)
        return x - sigma * self.net(x / (1 + sigma**2).sqrt(), sigma.log() / 4, domain)
