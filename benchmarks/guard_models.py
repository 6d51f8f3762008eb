"""The trainings that benchmarks/guard.py measures on: a ResNet-50, a GPT of 124M parameters, and small ones for a CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


class Bottleneck(nn.Module):
    def __init__(self, inner: int, outer: int, into: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(into, inner, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, inner, 3, stride, 1, bias=False), nn.BatchNorm2d(inner), nn.ReLU(inplace=True),
            nn.Conv2d(inner, outer, 1, bias=False), nn.BatchNorm2d(outer),
        )  # fmt: skip
        same = into == outer and stride == 1
        self.skip = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(into, outer, 1, stride, bias=False), nn.BatchNorm2d(outer))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.body(x) + self.skip(x))


def resnet(depths: tuple[int, ...], width: int) -> nn.Module:
    layers: list[nn.Module] = [
        nn.Conv2d(3, width, 7, 2, 3, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(3, 2, 1),
    ]
    into = width
    for stage, depth in enumerate(depths):
        inner = width * 2**stage
        for k in range(depth):
            layers.append(Bottleneck(inner, 4 * inner, into, 2 if k == 0 and stage else 1))
            into = 4 * inner
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(into, 1000))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = (
            z.view(b, t, self.heads, w // self.heads).transpose(1, 2) for z in self.qkv(self.norm(x)).split(w, 2)
        )
        return self.out(
            functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        )


class GPT(nn.Module):
    def __init__(self, vocabulary: int, context: int, depth: int, width: int, heads: int) -> None:
        super().__init__()
        self.token = nn.Embedding(vocabulary, width)
        self.place = nn.Embedding(context, width)
        self.attend = nn.ModuleList(Attention(width, heads) for _ in range(depth))
        self.think = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.token(x) + self.place(torch.arange(x.shape[1], device=x.device))
        for attend, think in zip(self.attend, self.think, strict=True):
            h = h + attend(h)
            h = h + think(h)
        return self.head(self.norm(h))


class Training:
    """A model, its optimizer and a fixed batch; `step` is one plain step with `look` between backward and step."""

    def __init__(self, name: str, device: str, small: bool) -> None:
        torch.manual_seed(0)
        self.name, self.device = name, torch.device(device)
        if name == "resnet":
            self.model: Any = (resnet((1, 1, 1, 1), 16) if small else resnet((3, 4, 6, 3), 64)).to(device)
            if device == "cuda":
                self.model = self.model.to(memory_format=torch.channels_last)
            batch, side = (16, 64) if small else (128, 224)
            self.x = torch.randn(batch, 3, side, side, device=device)
            self.y = torch.randint(0, 1000, (batch,), device=device)
            self.optimizer: Any = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9, weight_decay=1e-4)
        else:
            sizes = (1024, 128, 4, 128, 4) if small else (50304, 1024, 12, 768, 12)
            self.model = GPT(*sizes).to(device)
            batch, length = (8, 128) if small else (12, 1024)
            self.x = torch.randint(0, sizes[0], (batch, length), device=device)
            self.y = torch.randint(0, sizes[0], (batch, length), device=device)
            self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=device == "cuda")
        self.run = self.model

    def step(self, look: Callable[[torch.Tensor], None] | None = None) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            out = self.run(self.x)
        loss = functional.cross_entropy(out.float().view(-1, out.shape[-1]), self.y.view(-1))
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if look is not None:
            look(loss)
        self.optimizer.step()
        return loss

    def idle(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize()
