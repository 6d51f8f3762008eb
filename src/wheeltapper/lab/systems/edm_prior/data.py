"""Small scientific pictures of three domains, made by formula, in one to four channels.

photography: four channels of one scene of soft blobs and an edge; microscopy: one channel of rings;
astronomy: one channel of points and a smooth glow. Each is scaled to zero mean and a spread of 0.5.
"""

from __future__ import annotations

import torch

DOMAINS = ("photography", "microscopy", "astronomy")
CHANNELS = {"photography": 4, "microscopy": 1, "astronomy": 1}
SIGMA_DATA = 0.5


def make_tiles(domain: str, n: int, size: int, seed: int) -> torch.Tensor:
    """`n` tiles of the domain: n x channels x size x size."""
    generator = torch.Generator().manual_seed(1000 * seed + DOMAINS.index(domain))

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator) * (high - low) + low

    grid = torch.linspace(-1, 1, size)
    x, y = grid[None, None, :], grid[None, :, None]
    picture = torch.zeros(n, CHANNELS[domain], size, size)
    blobs = {"photography": 5, "microscopy": 3, "astronomy": 6}[domain]
    for _ in range(blobs):
        cx, cy = uniform(-0.8, 0.8, n)[:, None, None], uniform(-0.8, 0.8, n)[:, None, None]
        square = (x - cx) ** 2 + (y - cy) ** 2
        if domain == "photography":
            shape = torch.exp(-square / uniform(0.05, 0.3, n)[:, None, None])
            picture += uniform(-1, 1, n, 4)[:, :, None, None] * shape[:, None]
        elif domain == "microscopy":
            radius = uniform(0.2, 0.6, n)[:, None, None]
            picture += torch.exp(-((square.sqrt() - radius) ** 2) / 0.02)[:, None]
        else:
            picture += uniform(0.3, 1, n)[:, None, None, None] * torch.exp(-square / 0.02)[:, None]
    if domain == "photography":
        angle = uniform(0, 6.283, n)[:, None, None]
        edge = torch.sign(x * torch.cos(angle) + y * torch.sin(angle) - uniform(-0.5, 0.5, n)[:, None, None])
        picture += 0.5 * edge[:, None]
    mean, std = picture.mean((1, 2, 3), keepdim=True), picture.std((1, 2, 3), keepdim=True)
    return SIGMA_DATA * (picture - mean) / std.clamp_min(1e-3)


def padded(tiles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The tiles in four channels, and a mask of the channels that are real."""
    n, channels, height, width = tiles.shape
    full, mask = torch.zeros(n, 4, height, width), torch.zeros(n, 4, 1, 1)
    full[:, :channels] = tiles
    mask[:, :channels] = 1
    return full, mask


def psnr(made: torch.Tensor, clean: torch.Tensor, mask: torch.Tensor) -> float:
    """Over the real channels; the peak is the span of ±3 spreads that nearly all pixels lie in."""
    error = (((made - clean) ** 2) * mask).sum((1, 2, 3)) / (mask.sum((1, 2, 3)) * clean[0, 0].numel())
    peak = 6 * SIGMA_DATA
    return float((10 * torch.log10(peak**2 / error.clamp_min(1e-12))).mean())
