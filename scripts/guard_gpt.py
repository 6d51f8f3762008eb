"""Does anything speak before the loss does? Small GPTs that are pushed past what they can bear, and twins that are not.

Sixteen trainings at once, as in guard_ensemble.py: four layers of width 256 (3.3 million parameters each), Adam with β2 of
0.95 or 0.999, clipped or not, a language of a random table whose second half repeats the first. Of every step the loss,
the gradient norm, the update, and the second-moment lag (RMS of g²/v of a tensor: the largest, and that of the embedding)
are kept. scripts/guard_lab.py calls this and scores it.
"""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from random import Random

import numpy as np
import torch
from guard_ensemble import Optimizer, cross
from torch.nn import functional as F  # noqa: N812

SIZES = {"full": (4, 256, 4, 128, 64, 8), "tiny": (2, 32, 2, 32, 16, 4)}  # layers, width, heads, words, length, batch
QUIET, STEPS = 600, 1900  # trouble comes from the one to the other
# What breaks every second training: a rate that climbs, jumps, or is too high from the start; words that are more and more
# noise; a second moment that remembers ten thousand steps, at three times the rate and without clipping.
FAULTS = ("lr-ramp", "lr-ramp", "lr-jump", "lr-high", "bad-data", "beta2")


class Many:
    """`r` GPTs, their parameters in one list; each tensor has the training as its first dimension."""

    def __init__(self, r: int, size: tuple[int, ...], device: torch.device) -> None:
        self.r, (self.depth, d, self.heads, v, t, self.n) = r, size
        self.v, self.t = v, t

        def normal(*shape: int, std: float = 0.02) -> torch.Tensor:
            return std * torch.randn(r, *shape, device=device)

        self.names, self.params = ["words", "places"], [normal(v, d), normal(t, d)]
        for k in range(self.depth):
            shapes = {
                "n1": (1, d),
                "qkv": (d, 3 * d),
                "out": (d, d),
                "n2": (1, d),
                "up": (d, 4 * d),
                "down": (4 * d, d),
            }
            for name, shape in shapes.items():
                self.names.append(f"{k}.{name}")
                self.params.append(torch.ones(r, *shape, device=device) if name[0] == "n" else normal(*shape))
        self.names += ["norm", "head"]
        self.params += [torch.ones(r, 1, d, device=device), normal(d, v)]
        self.table = torch.softmax(2.5 * torch.randn(r, v, v, device=device), -1)

    def batch(self, noise: torch.Tensor) -> torch.Tensor:
        """Words by the table; the second half says the first again, which only attention can know. `noise`: the share of
        words of each training that are any word instead."""
        r, n, half = self.r, self.n, self.t // 2 + 1
        words = [torch.randint(0, self.v, (r, n), device=self.table.device)]
        rows = torch.arange(r, device=self.table.device)[:, None]
        for _ in range(half - 1):
            words.append(torch.multinomial(self.table[rows, words[-1]].view(r * n, -1), 1).view(r, n))
        first = torch.stack(words, -1)
        words = torch.cat([first, first], -1)[:, :, : self.t + 1]
        spoiled = torch.rand(words.shape, device=words.device) < noise.view(-1, 1, 1)
        return torch.where(spoiled, torch.randint_like(words, self.v), words)

    def loss(self, noise: torch.Tensor) -> torch.Tensor:
        words = self.batch(noise)
        x, y = words[:, :, :-1], words[:, :, 1:]
        r, n, t = x.shape
        p = dict(zip(self.names, self.params, strict=True))
        rows = torch.arange(r, device=x.device)[:, None]
        h = p["words"][rows, x.reshape(r, -1)] + p["places"].repeat(1, n, 1)
        for k in range(self.depth):
            z = F.layer_norm(h, h.shape[-1:]) * p[f"{k}.n1"]
            q, key, value = (
                a.view(r * n, t, self.heads, -1).transpose(1, 2) for a in torch.bmm(z, p[f"{k}.qkv"]).chunk(3, -1)
            )
            a = F.scaled_dot_product_attention(q, key, value, is_causal=True).transpose(1, 2).reshape(r, n * t, -1)
            h = h + torch.bmm(a, p[f"{k}.out"])
            z = F.layer_norm(h, h.shape[-1:]) * p[f"{k}.n2"]
            h = h + torch.bmm(F.gelu(torch.bmm(z, p[f"{k}.up"])), p[f"{k}.down"])
        return cross(torch.bmm(F.layer_norm(h, h.shape[-1:]) * p["norm"], p["head"]), y.reshape(r, -1))


def train(out: Path, number: int, size: str = "full", seconds: float = math.inf, r: int = 16) -> None:
    """Sixteen trainings; those of even number have a fault, the others are their healthy twins. What was made in `seconds` is
    kept."""
    begun = time.perf_counter()
    torch.manual_seed(number)
    torch.set_num_threads(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = Random(f"gpt:{number}")
    model = Many(r, SIZES[size], device)
    optimizer = Optimizer("adam", model.params, r, rng)
    optimizer.beta2 = [rng.choice([0.95, 0.999]) for _ in range(r)]
    optimizer.decay = [0.0] * r
    base = [rng.choice([5e-4, 1e-3]) for _ in range(r)]
    clips = [rng.choice([math.inf, 1.0]) for _ in range(r)]
    t = np.arange(STEPS)
    curve = np.stack([b * np.minimum(1.0, (t + 1) / 200) for b in base], 1)
    bad, faults = np.zeros((STEPS, r)), [rng.choice(FAULTS) if k % 2 == 0 else None for k in range(r)]
    growth, factor = (
        [rng.choice([1.0015, 1.003, 1.006]) for _ in range(r)],
        [rng.choice([5.0, 15.0, 50.0]) for _ in range(r)],
    )
    for k, fault in enumerate(faults):
        if fault == "lr-ramp":
            curve[:, k] *= growth[k] ** np.maximum(0, t - QUIET)
        elif fault == "lr-jump":
            curve[QUIET:, k] *= factor[k]
        elif fault == "lr-high":
            curve[:, k] *= factor[k]
        elif fault == "bad-data":
            bad[QUIET:, k] = np.minimum(1.0, 1e-3 * (growth[k] - 1) / 0.003 * (t[QUIET:] - QUIET))
        elif fault == "beta2":
            curve[:, k] *= 3
            optimizer.beta2[k], clips[k] = 0.9999, math.inf
    optimizer.prepare()
    noise = torch.tensor(bad, dtype=torch.float32, device=device)
    rates, limit = torch.tensor(curve, dtype=torch.float32, device=device), torch.tensor(clips, device=device)
    kept = torch.full((STEPS, 5, r), math.nan, device=device)
    for p in model.params:
        p.requires_grad_(True)
    for step in range(STEPS):
        if time.perf_counter() - begun > seconds:
            kept, curve = kept[:step], curve[:step]
            break
        losses = model.loss(noise[step])
        grads = list(torch.autograd.grad(losses.sum(), model.params))
        with torch.no_grad():
            norm = torch.stack([g.square().view(r, -1).sum(1) for g in grads]).sum(0).sqrt()
            scale = (limit / (norm + 1e-6)).clamp(max=1.0)
            grads = [g * scale.view(-1, 1, 1) for g in grads]
            before = [p.clone() for p in model.params]
            optimizer.step(grads, rates[step])
            change = torch.stack(
                [(p - b).square().view(r, -1).sum(1) for p, b in zip(model.params, before, strict=True)]
            )
            weight = torch.stack([p.square().view(r, -1).sum(1) for p in model.params])
            # As guard/look.py: bias-corrected, ε² at least.
            lags = torch.stack(
                [
                    (g.square() / (v / (1 - b**optimizer.t)).clamp_(min=1e-16)).view(r, -1).mean(1).sqrt()
                    for g, v, b in zip(grads, optimizer.second, optimizer.b2, strict=True)
                ]
            )
            kept[step, 0], kept[step, 1] = losses.detach(), norm
            kept[step, 2] = (change.sum(0) / weight.sum(0)).sqrt()
            kept[step, 3], kept[step, 4] = lags.amax(0), lags[0]
    rows = kept.cpu().numpy()
    out.mkdir(parents=True, exist_ok=True)
    for k in range(r):
        truth = {
            "system": f"gpt-{size}",
            "kind": "fault" if faults[k] else "healthy",
            "fault": faults[k],
            "onset": None if faults[k] is None else 0 if faults[k] in ("lr-high", "beta2") else QUIET,
            "beta2": optimizer.beta2[k],
            "clip": None if clips[k] == math.inf else clips[k],
            "growth": growth[k],
            "factor": factor[k],
        }
        np.savez_compressed(
            out / f"gpt-{number:03}-{k:02}.npz", truth=json.dumps(truth), incidents="[]", loss=rows[:, 0, k],
            grad_norm=rows[:, 1, k], update_ratio=rows[:, 2, k], lr=curve[:, k], step_s=np.full(len(rows), np.nan),
            lag=rows[:, 3, k], lag_words=rows[:, 4, k],
        )  # fmt: skip
