"""A small network in the manner of ParagonSR2: a fixed resampling base plus a learned, gated detail."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

WINDOW = 4


class Base(nn.Module):
    """Bicubic upsampling with a fixed sharpening; its weights are never trained, as in the original."""

    def __init__(self, scale: int) -> None:
        super().__init__()
        self.scale = scale
        kernel = torch.tensor([[0.0, -1.0, 0.0], [-1.0, 4.0, -1.0], [0.0, -1.0, 0.0]])
        self.sharp = nn.Parameter(kernel.repeat(3, 1, 1, 1), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        up = F.interpolate(x, scale_factor=self.scale, mode="bicubic", align_corners=False)
        return up + 0.1 * F.conv2d(F.pad(up, (1, 1, 1, 1), mode="replicate"), self.sharp, groups=3)


class WindowAttention(nn.Module):
    """Self-attention inside windows of 4 x 4 positions."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.logits = nn.Identity()  # a place where half precision can be watched
        self.out = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, c, h, w = x.shape
        n = WINDOW
        x = x.view(b, c, h // n, n, w // n, n).permute(0, 2, 4, 3, 5, 1).reshape(-1, n * n, c)
        q, k, v = self.qkv(x).view(-1, n * n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        share = self.logits(q @ k.transpose(-1, -2) * self.scale).softmax(-1)
        x = self.out((share @ v).transpose(1, 2).reshape(-1, n * n, c))
        return x.view(b, h // n, w // n, n, n, c).permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)


class Block(nn.Module):
    """Attention and a convolution, each scaled by a learned layer scale that starts small."""

    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(1, dim)
        self.attention = WindowAttention(dim, heads)
        self.conv = nn.Sequential(
            nn.Conv2d(dim, dim, 3, padding=1, groups=dim),
            nn.Conv2d(dim, 2 * dim, 1),
            nn.SiLU(),
            nn.Conv2d(2 * dim, dim, 1),
        )
        self.gamma1 = nn.Parameter(torch.full((dim, 1, 1), 0.1))
        self.gamma2 = nn.Parameter(torch.full((dim, 1, 1), 0.1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.gamma1 * self.attention(self.norm(x))
        return x + self.gamma2 * self.conv(x)


class ParagonSR2(nn.Module):
    def __init__(self, scale: int = 2, dim: int = 16, blocks: int = 2, heads: int = 2) -> None:
        super().__init__()
        self.base = Base(scale)
        self.head = nn.Conv2d(3, dim, 3, padding=1)
        self.body = nn.Sequential(*(Block(dim, heads) for _ in range(blocks)))
        self.gate = nn.Conv2d(dim, 3 * scale**2, 1)  # content-aware: how much detail belongs here
        self.detail = nn.Conv2d(dim, 3 * scale**2, 3, padding=1)
        self.shuffle = nn.PixelShuffle(scale)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        feature = self.head(x - 0.5)
        feature = feature + self.body(feature)
        return self.base(x) + self.shuffle(self.detail(feature) * torch.sigmoid(self.gate(feature)))


class PatchDiscriminator(nn.Module):
    """Judges patches real or made; only for the runs that train with a GAN loss."""

    def __init__(self, dim: int = 16) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, dim, 3, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(dim, 2 * dim, 3, 2, 1),
            nn.LeakyReLU(0.2),
            nn.Conv2d(2 * dim, 1, 3, 1, 1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)
