"""Pictures made by formula: a striped patch of the class's direction, spacing and colour among clutter.

Where the patch lies, how large it is, the phase of its stripes and two stray patches vary freely, so a
net must learn the stripes and not the pixels: with a few dozen pictures a class it memorises the training
set before it understands it, which gives a real gap between training and validation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

Draw = Callable[..., torch.Tensor]  # low, high, *shape
MEAN = (0.5, 0.5, 0.5)
STD = (0.2, 0.2, 0.2)


@dataclass(frozen=True, slots=True)
class Pictures:
    """Images in [0, 1], N x 3 x S x S, and their classes."""

    images: torch.Tensor
    labels: torch.Tensor
    num_classes: int

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: torch.device) -> Pictures:
        return Pictures(self.images.to(device), self.labels.to(device), self.num_classes)


def make_pictures(n: int, num_classes: int, size: int, seed: int, clutter: float = 1.0) -> Pictures:
    """`n` pictures, sorted by class as a folder of classes is; the same seed gives the same pictures."""
    generator = torch.Generator().manual_seed(seed)

    def uniform(low: float, high: float, *shape: int) -> torch.Tensor:
        return torch.rand(*shape, generator=generator) * (high - low) + low

    labels = torch.arange(n) * num_classes // n
    directions = 5
    theta = math.pi * (labels % directions) / directions + uniform(-0.12, 0.12, n)
    fine = (labels // directions) % 2
    frequency = torch.where(fine == 1, 0.27, 0.16) * uniform(0.9, 1.1, n)
    hue = 2 * math.pi * (labels // (2 * directions)) / max(1, math.ceil(num_classes / (2 * directions)))
    images = patch(theta, frequency, hue + uniform(-0.5, 0.5, n), uniform, size)
    for _ in range(2):
        stray = patch(uniform(0, math.pi, n), uniform(0.1, 0.3, n), uniform(0, 2 * math.pi, n), uniform, size)
        images = images + clutter * stray
    images = images + 0.5 * torch.randn(images.shape, generator=generator)
    return Pictures((0.5 + 0.2 * images).clamp(0, 1), labels, num_classes)


def patch(theta: torch.Tensor, frequency: torch.Tensor, hue: torch.Tensor, uniform: Draw, size: int) -> torch.Tensor:
    """One striped patch a picture: a Gabor function at a random place, in the colour `hue`."""
    n = len(theta)
    grid = torch.linspace(-1, 1, size)
    x = grid[None, None, :] - uniform(-0.45, 0.45, n)[:, None, None]
    y = grid[None, :, None] - uniform(-0.45, 0.45, n)[:, None, None]
    along = x * torch.cos(theta)[:, None, None] + y * torch.sin(theta)[:, None, None]
    wave = torch.cos(
        2 * math.pi * frequency[:, None, None] * along * size / 2 + uniform(0, 2 * math.pi, n)[:, None, None]
    )
    window = torch.exp(-(x**2 + y**2) / uniform(0.12, 0.3, n)[:, None, None])
    shift = torch.tensor([0.0, 2.1, 4.2])
    colour = 1 + 0.8 * torch.cos(hue[:, None] + shift)
    return (1.3 * wave * window)[:, None] * colour[:, :, None, None]


def normalise(images: torch.Tensor) -> torch.Tensor:
    mean = torch.tensor(MEAN, device=images.device)[:, None, None]
    std = torch.tensor(STD, device=images.device)[:, None, None]
    return (images - mean) / std


def resize(images: torch.Tensor, size: int) -> torch.Tensor:
    if images.shape[-1] == size:
        return images
    return F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)


def augment(images: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Shift by up to two pixels. No flip: a mirrored stripe has another direction, so another class."""
    shift = torch.randint(-2, 3, (2,), generator=generator).tolist()
    return torch.roll(images, shifts=shift, dims=(2, 3))
