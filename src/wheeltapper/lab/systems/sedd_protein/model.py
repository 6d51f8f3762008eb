"""Score-entropy discrete diffusion (Lou et al. 2023): graphs, noise schedules, and a small transformer.

The loss follows the paper's definition for any graph: with r(y) = p(y|x0)/p(x|x0) and a score s(y),
    sum over y != x of Q(x, y) * (s(y) - r(y) * log s(y) + r(y) * (log r(y) - 1)).
"""

from __future__ import annotations

import math
from itertools import pairwise

import torch
from torch import nn


class Noise:
    """total(t): the noise at time t; rate(t): its derivative."""

    def __init__(self, kind: str, sigma_min: float, sigma_max: float, eps: float = 1e-3) -> None:
        self.kind, self.low, self.high, self.eps = kind, sigma_min, sigma_max, eps

    def total(self, t: torch.Tensor) -> torch.Tensor:
        if self.kind == "loglinear":
            return -torch.log1p(-(1 - self.eps) * t)
        if self.kind == "cosine":
            return self.low + (self.high - self.low) * (1 - torch.cos(math.pi * t / 2))
        return self.low ** (1 - t) * self.high**t

    def rate(self, t: torch.Tensor) -> torch.Tensor:
        if self.kind == "loglinear":
            return (1 - self.eps) / (1 - (1 - self.eps) * t)
        if self.kind == "cosine":
            return (self.high - self.low) * math.pi / 2 * torch.sin(math.pi * t / 2)
        return self.total(t) * math.log(self.high / self.low)


class Graph:
    """`absorb`: a residue turns into the mask; `uniform`: into any other residue."""

    def __init__(self, kind: str, tokens: int) -> None:
        self.kind = kind
        self.dim = tokens + 1 if kind == "absorb" else tokens
        self.tokens = tokens

    def corrupt(self, x0: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        hit = torch.rand(x0.shape, device=x0.device) < 1 - torch.exp(-sigma)[:, None]
        noise = torch.randint_like(x0, self.tokens) if self.kind == "uniform" else torch.full_like(x0, self.tokens)
        return torch.where(hit, noise, x0)

    def entropy(self, score: torch.Tensor, sigma: torch.Tensor, x: torch.Tensor, x0: torch.Tensor) -> torch.Tensor:
        """The score entropy of each sequence, summed over its positions; `score` is the log score."""
        sigma = sigma[:, None, None]
        target = nn.functional.one_hot(x0, self.dim).to(score.dtype)
        if self.kind == "absorb":
            ratio = target / torch.expm1(sigma)
            counts = (x == self.tokens)[..., None] * torch.ones_like(score)
            counts[..., self.tokens] = 0
        else:
            spread = (1 - torch.exp(-sigma)) / self.dim
            chance = target * torch.exp(-sigma) + spread
            ratio = chance / chance.gather(-1, x[..., None])
            counts = (1 - nn.functional.one_hot(x, self.dim).to(score.dtype)) / self.dim
        constant = torch.where(ratio > 0, ratio * (ratio.clamp_min(1e-30).log() - 1), torch.zeros_like(ratio))
        return (counts * (score.exp() - ratio * score + constant)).sum((1, 2))

    def start(self, shape: tuple[int, int], device: torch.device) -> torch.Tensor:
        if self.kind == "absorb":
            return torch.full(shape, self.tokens, device=device)
        return torch.randint(0, self.tokens, shape, device=device)


class Block(nn.Module):
    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.heads = heads
        self.qkv, self.out = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.mlp = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        seen = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, c)
        x = x + self.dropout(self.out(seen))
        return x + self.dropout(self.mlp(self.norm2(x)))


class SEDD(nn.Module):
    """The log score of every residue at every position, given a noisy sequence and its noise."""

    def __init__(
        self, graph: Graph, length: int, hidden_size: int, n_blocks: int, n_heads: int, dropout: float
    ) -> None:
        super().__init__()
        self.graph = graph
        self.embed = nn.Embedding(graph.dim, hidden_size)
        self.place = nn.Parameter(0.5 * torch.randn(length, hidden_size))
        self.noise = nn.Sequential(nn.Linear(2, hidden_size), nn.SiLU(), nn.Linear(hidden_size, hidden_size))
        self.blocks = nn.Sequential(*(Block(hidden_size, n_heads, dropout) for _ in range(n_blocks)))
        self.norm = nn.LayerNorm(hidden_size)
        self.head = nn.Linear(hidden_size, graph.dim)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: torch.Tensor, sigma: torch.Tensor) -> torch.Tensor:
        told = torch.stack([sigma.clamp_min(1e-6).log(), torch.exp(-sigma)], -1)
        hidden = self.embed(x) + self.place + self.noise(told)[:, None]
        score = self.head(self.norm(self.blocks(hidden)))
        if self.graph.kind == "absorb":  # scale_by_sigma: an untrained model guesses all residues alike
            score = score - torch.expm1(sigma).clamp_min(1e-12).log()[:, None, None] - math.log(self.graph.tokens)
        return score


def sample(model: nn.Module, noise: Noise, n: int, length: int, steps: int, device: torch.device) -> torch.Tensor:
    """Generate `n` sequences, from the noisiest time to none.

    Absorbing: a hidden residue shows itself with the chance that the noise schedule gives. Uniform: an Euler
    step of the reverse process, whose rates are the scores.
    """
    graph: Graph = model.graph
    x = graph.start((n, length), device)
    times = torch.linspace(1, 1e-3, steps + 1, device=device)
    for now, then in pairwise(times):
        sigma, later = noise.total(now).expand(n), noise.total(then).expand(n)
        with torch.no_grad():
            score = model(x, sigma)[..., : graph.tokens]
        if graph.kind == "absorb":
            hidden, hidden_later = 1 - torch.exp(-sigma), 1 - torch.exp(-later)
            guess = draw(score.softmax(-1))
            move = torch.rand(x.shape, device=device) < ((hidden - hidden_later) / hidden)[:, None]
            last = then == times[-1]
            x = torch.where((x == graph.tokens) & (move | last), guess, x)
        else:
            rates = (sigma - later)[:, None, None] * score.exp().clamp_max(1e4) / graph.dim
            rates.scatter_(-1, x[..., None], 0.0)
            leave = rates.sum(-1, keepdim=True)
            rates = rates / leave.clamp_min(1.0)
            rates.scatter_(-1, x[..., None], (1 - leave).clamp_min(0.0))
            x = draw(rates)
    return x


def draw(chances: torch.Tensor) -> torch.Tensor:
    """One residue per position."""
    chances = chances.nan_to_num(0.0) + 1e-9  # a broken model still gives a sequence, only a bad one
    return torch.multinomial(chances.reshape(-1, chances.shape[-1]), 1).view(chances.shape[:-1])
