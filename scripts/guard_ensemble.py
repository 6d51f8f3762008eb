"""Many small healthy trainings at once, for the guard's rate of false alarms: millions of looks in minutes.

Sixteen trainings of one architecture, each with its own weights, data, rate, schedule, warm-up, clipping, dropout and so
on, are carried as one more dimension of every tensor. The sum of their losses is differentiated; as no training
touches another's numbers, each gets its own gradient, its own norm and its own step. scripts/guard_lab.py calls this.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F  # noqa: N812

REPLICAS = 16
BATCHES = (1, 2, 4, 8, 16, 64)
EVERY = 100  # steps between looks at every tensor, as the guard's default
# Of each tensor at a look, in the names and the order of guard/record.py.
LOOKED = ("weight_rms", "grad_rms", "update_rms", "moved", "lag", "active")
Loss = Callable[[int, int], torch.Tensor]  # step, batch size -> the loss of every training


def dense(r: int, a: int, b: int) -> list[torch.Tensor]:
    """Weights and bias of a layer, as nn.Linear draws them."""
    bound = a**-0.5
    return [torch.empty(r, a, b).uniform_(-bound, bound), torch.empty(r, 1, b).uniform_(-bound, bound)]


def cross(out: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Cross-entropy per training: out [R, n, classes], y [R, n] or soft [R, n, classes]."""
    logs = torch.log_softmax(out, -1)
    if y.dim() == out.dim():
        return -(y * logs).sum(-1).mean(-1)
    return -logs.gather(-1, y.unsqueeze(-1)).squeeze(-1).mean(-1)


def column(values: list[float], dims: int) -> torch.Tensor:
    return torch.tensor(values).view(-1, *[1] * (dims - 1))


def mlp(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """Classes of a random teacher; some trainings with dropout, mixed inputs, wrong labels, or a rare group of inputs
    far from the rest in one batch of fifty."""
    w, classes = rng.choice([16, 32]), 5
    params = [*dense(r, 12, w), *dense(r, w, w), *dense(r, w, classes)]
    teacher = torch.randn(r, 12, classes)
    drop = column([rng.choice([0.0, 0.0, 0.1, 0.5]) for _ in range(r)], 3)
    mixed = column([float(rng.random() < 0.25) for _ in range(r)], 3)
    wrong = column([rng.choice([0.0, 0.0, 0.1]) for _ in range(r)], 2)
    rare = column([rng.choice([0.0, 0.0, 0.02]) for _ in range(r)], 1)

    def loss(_: int, n: int) -> torch.Tensor:
        x = torch.randn(r, n, 12) + 4.0 * (torch.rand(r) < rare).float().view(-1, 1, 1)
        y = torch.bmm(x.abs(), teacher).argmax(-1)
        y = torch.where(torch.rand(r, n) < wrong, torch.randint(0, classes, (r, n)), y)
        soft = F.one_hot(y, classes).float()
        lam = 1 - mixed * (1 - torch.rand(r, 1, 1))
        x, soft = lam * x + (1 - lam) * x.flip(1), lam * soft + (1 - lam) * soft.flip(1)
        h = torch.relu(torch.baddbmm(params[1], x, params[0]))
        h = h * (torch.rand_like(h) >= drop) / (1 - drop)
        h = torch.relu(torch.baddbmm(params[3], h, params[2]))
        return cross(torch.baddbmm(params[5], h, params[4]), soft)

    return params, loss


def conv(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """Pictures of four kinds under noise; convolution and batch norm, all trainings in groups of channels."""
    c, noise = 8, column([rng.choice([0.5, 1.5, 3.0]) for _ in range(r)], 5)

    def kernel(a: int, b: int) -> torch.Tensor:
        return torch.empty(r * b, a, 3, 3).uniform_(-1, 1) / math.sqrt(9 * a)

    params = [kernel(1, c), torch.ones(r * c), torch.zeros(r * c)]
    params += [kernel(c, c), torch.ones(r * c), torch.zeros(r * c), *dense(r, 4 * c, 4)]
    marks = torch.randn(r, 4, 8, 8)

    def loss(_: int, n: int) -> torch.Tensor:
        y = torch.randint(0, 4, (r, n))
        x = marks[torch.arange(r)[:, None], y].unsqueeze(2) + noise * torch.randn(r, n, 1, 8, 8)
        h = x.transpose(0, 1).reshape(n, r, 8, 8)
        for k in (0, 3):
            h = F.conv2d(h, params[k], stride=2, padding=1, groups=r)
            h = torch.relu(F.batch_norm(h, None, None, params[k + 1], params[k + 2], training=True))
        h = h.view(n, r, 4 * c).transpose(0, 1)
        return cross(torch.baddbmm(params[7], h, params[6]), y)

    return params, loss


def tokens(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """The next word of a random table; words as frequent as in a language, so that most batches miss most of them."""
    v, w = 40, rng.choice([16, 32])
    params = [torch.randn(r, v, w), *dense(r, w, w), *dense(r, w, v)]
    table = torch.softmax(2 * torch.randn(r, v, v), -1)
    frequent = (1 / torch.arange(1, v + 1).float() ** rng.choice([0.0, 1.0, 1.5])).expand(r, v)
    which = torch.arange(r)[:, None]

    def loss(_: int, n: int) -> torch.Tensor:
        x = torch.multinomial(frequent, 4 * n, replacement=True)
        y = torch.multinomial(table[which, x].view(-1, v), 1).view(r, -1)
        h = torch.relu(torch.baddbmm(params[2], params[0][which, x], params[1]))
        return cross(torch.baddbmm(params[4], h, params[3]), y)

    return params, loss


def regression(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """Targets with Student noise of 3 to 30 degrees of freedom; squared or Huber loss."""
    w = rng.choice([16, 32])
    params = [*dense(r, 8, w), *dense(r, w, 1)]
    weight = torch.randn(r, 8, 1)
    noise = torch.distributions.StudentT(torch.tensor([rng.choice([3.0, 5.0, 30.0]) for _ in range(r)]))
    level = column([rng.choice([0.05, 0.3]) for _ in range(r)], 3)
    huber = rng.random() < 0.3

    def loss(_: int, n: int) -> torch.Tensor:
        x = torch.randn(r, n, 8)
        y = torch.sin(torch.bmm(x, weight)) + level * noise.sample((n,)).t().unsqueeze(-1)
        out = torch.baddbmm(params[3], torch.tanh(torch.baddbmm(params[1], x, params[0])), params[2])
        each = F.huber_loss(out, y, reduction="none") if huber else (out - y).square()
        return each.mean((1, 2))

    return params, loss


def tasks(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """Two tasks on one body: one batch in four, eight or thirty-two is of the second, with a loss of another size."""
    w = 24
    params = [*dense(r, 10, w), *dense(r, w, 4), *dense(r, w, 3)]
    first, second = torch.randn(r, 10, 4), torch.randn(r, 10, 3)
    often = torch.tensor([rng.choice([4, 8, 32]) for _ in range(r)])
    size = column([rng.choice([0.3, 1.0, 3.0, 10.0]) for _ in range(r)], 1)
    turns = torch.tensor([float(rng.random() < 0.5) for _ in range(r)])  # in turn, or by chance

    def loss(step: int, n: int) -> torch.Tensor:
        x = torch.randn(r, n, 10)
        h = torch.tanh(torch.baddbmm(params[1], x, params[0]))
        a = cross(torch.baddbmm(params[3], h, params[2]), torch.bmm(x, first).argmax(-1))
        b = (torch.baddbmm(params[5], h, params[4]) - torch.sin(torch.bmm(x, second))).square().mean((1, 2))
        now = torch.where(turns > 0, (step % often == 0).float(), (torch.rand(r) < 1 / often).float())
        return (1 - now) * a + now * size * b

    return params, loss


def recurrent(r: int, rng: Random) -> tuple[list[torch.Tensor], Loss]:
    """Say at the end what was seen at the start: eight steps of one recurrent layer, whose gradients have heavy tails."""
    w, v = 20, 6
    params = [*dense(r, v, w), *dense(r, w, w), *dense(r, w, v)]
    length = rng.choice([4, 8])

    def loss(_: int, n: int) -> torch.Tensor:
        x = torch.randint(0, v, (r, n, length))
        seen = F.one_hot(x, v).float()
        h = torch.zeros(r, n, w)
        for k in range(length):
            h = torch.tanh(torch.baddbmm(params[1], seen[:, :, k], params[0]) + torch.baddbmm(params[3], h, params[2]))
        return cross(torch.baddbmm(params[5], h, params[4]), x[:, :, 0])

    return params, loss


TASKS = {"mlp": mlp, "conv": conv, "tokens": tokens, "regression": regression, "tasks": tasks, "recurrent": recurrent}
KINDS = ("sgd", "adam", "adamw")


def rates(base: float, schedule: str, warmup: int, steps: int) -> np.ndarray[Any, Any]:
    t = np.arange(steps)
    shape = np.minimum(1.0, (t + 1) / warmup) if warmup else np.ones(steps)
    if schedule == "cosine":
        shape = shape * 0.5 * (1 + np.cos(math.pi * t / steps))
    elif schedule == "step":
        shape = shape * 0.1 ** (t * 3 // steps)
    elif schedule == "cycles":  # warm restarts
        shape = shape * 0.5 * (1 + np.cos(math.pi * (t % (steps // 4)) / (steps // 4)))
    return base * shape


class Optimizer:
    """SGD with momentum, Adam or AdamW, with the settings of every training in the first dimension."""

    def __init__(self, kind: str, params: list[torch.Tensor], r: int, rng: Random) -> None:
        self.kind, self.params, self.r = kind, params, r
        self.beta2 = [rng.choice([0.95, 0.99, 0.999]) for _ in range(r)]
        self.decay = [rng.choice([0.0, 0.01, 0.1]) if kind == "adamw" else rng.choice([0.0, 1e-4]) for _ in range(r)]
        self.first = [torch.zeros_like(p) for p in params]
        self.second = [torch.zeros_like(p) for p in params]
        self.t = 0

    def like(self, values: list[float] | torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        """One number a training, shaped to multiply a parameter (convolutions hold them in their first dimension)."""
        flat = torch.as_tensor(values, dtype=torch.float32, device=p.device)
        return flat.repeat_interleave(p.shape[0] // self.r).view(-1, *[1] * (p.dim() - 1))

    def prepare(self) -> None:
        self.b2 = [self.like(self.beta2, p) for p in self.params]
        self.wd = [self.like(self.decay, p) for p in self.params]

    def step(self, grads: list[torch.Tensor], rate: torch.Tensor) -> None:
        self.t += 1
        lr = [self.like(rate, p) for p in self.params]
        if self.kind == "adamw":
            torch._foreach_addcmul_(self.params, torch._foreach_mul(self.params, self.wd), lr, -1.0)
        else:
            torch._foreach_addcmul_(grads, self.params, self.wd)
        if self.kind == "sgd":
            torch._foreach_mul_(self.first, 0.9)
            torch._foreach_add_(self.first, grads)
            torch._foreach_addcmul_(self.params, self.first, lr, -1.0)
            return
        torch._foreach_lerp_(self.first, grads, 0.1)
        for v, g, b in zip(self.second, grads, self.b2, strict=True):
            v.mul_(b).addcmul_(g * g, 1 - b)
        c1 = 1 - 0.9**self.t
        for p, m, v, b, a in zip(self.params, self.first, self.second, self.b2, lr, strict=True):
            p.addcdiv_(m * a, (v / (1 - b**self.t)).sqrt_().add_(1e-8), value=-1 / c1)


def changed(rng: Random, steps: int) -> dict[str, Any]:
    """What goes wrong in one training, or what changes without harm; drawn apart from the settings."""
    onset = int(steps * rng.uniform(0.3, 0.7))
    fault = rng.choice(["lr-ramp", "lr-ramp", "lr-high", "lr-jump", "beta2", "lr-rises"])
    return {
        "fault": fault,
        "onset": 0 if fault in ("lr-high", "lr-rises", "beta2") else onset,
        "growth": rng.choice([1.0005, 1.001, 1.003, 1.006]),
        "factor": rng.choice([3.0, 10.0, 30.0, 100.0]),
    }


def spoiled(curve: np.ndarray[Any, Any], c: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The rates of a training with a fault: climbing from an onset on, too high throughout, at once from the onset on, or by
    a warm-up that ends far too high."""
    t, base = np.arange(len(curve)), curve.max()
    if c["fault"] == "lr-ramp":
        return np.where(t < c["onset"], curve, curve[c["onset"]] * c["growth"] ** np.clip(t - c["onset"], 0, 4000))
    if c["fault"] == "lr-jump":
        return np.where(t < c["onset"], curve, base * c["factor"])
    if c["fault"] == "lr-rises":
        return base * (1 + (c["factor"] - 1) * t / len(t))
    return curve * (c["factor"] if c["fault"] == "lr-high" else 3.0)


def outcome(loss: np.ndarray[Any, Any]) -> str:
    """Said of the losses alone, before any verdict: healthy is finite throughout, and not half of what was learned is lost
    again."""
    tenths = [float(np.median(part)) for part in np.array_split(loss, 10)]
    start, best = float(np.median(loss[: len(loss) // 50])), min(tenths)
    learned = bool(np.isfinite(loss).all()) and tenths[-1] <= best + 0.5 * max(start - best, 0.0) + 0.05 * start
    return "healthy" if learned else "not learned"


def looked(optimizer: Optimizer, grads: list[torch.Tensor], before: list[torch.Tensor]) -> torch.Tensor:
    """What the guard's look would hold of every tensor of every training: [R, tensors, LOOKED]."""
    r, t, rows = optimizer.r, optimizer.t, []
    for k, (p, g, old) in enumerate(zip(optimizer.params, grads, before, strict=True)):
        each = [x.reshape(r, -1) for x in (old, g, p - old, (p != old).float(), (g != 0).float())]
        rms = [x.square().mean(1).sqrt() for x in each[:3]]
        lag = torch.full((r,), math.nan)
        if optimizer.kind != "sgd":
            v = (optimizer.second[k] / (1 - optimizer.b2[k] ** t)).clamp(min=1e-16)
            lag = (g.square() / v).reshape(r, -1).mean(1).sqrt()
        rows.append(torch.stack([*rms, each[3].mean(1), lag, each[4].mean(1)], -1))
    return torch.stack(rows, 1)


def train(out: Path, number: int, steps: int, what: str = "healthy") -> None:
    """Sixteen trainings with settings drawn by `number`; one file each in the form of guard_lab.py. `what`: healthy, faults
    (half of them, their twins are healthy), or odd (batches that become four times as large or as small)."""
    torch.set_num_threads(1)
    torch.manual_seed(number)
    rng, r = Random(f"ensemble:{number}"), REPLICAS
    task = list(TASKS)[number % len(TASKS)]
    kind, n = KINDS[number // len(TASKS) % 3], BATCHES[(number // 7) % len(BATCHES)]
    params, loss_of = TASKS[task](r, rng)
    optimizer = Optimizer(kind, params, r, rng)
    # Rates that suit the size of the batch: a batch of one at the rate of a batch of 64 is no healthy training.
    base = (0.003, 0.01, 0.03) if kind == "sgd" else (3e-4, 1e-3, 3e-3)
    down = 1.0 if n >= 16 else 0.3
    settings = [
        {
            "rate": down * rng.choice(base),
            "schedule": rng.choice(["constant", "cosine", "step", "cycles"]),
            "warmup": rng.choice([0, 100, 1000]),
            "clip": rng.choice([math.inf, math.inf, 1.0]),
        }
        for _ in range(r)
    ]
    curve = np.stack([rates(s["rate"], s["schedule"], s["warmup"], steps) for s in settings], 1)
    wrong: list[dict[str, Any]] = [{"fault": None, "onset": None} for _ in range(r)]
    other = Random(f"changed:{number}")
    later, at = n, steps
    if what == "faults":
        for k in range(0, r, 2):
            wrong[k] = changed(other, steps)
            curve[:, k] = spoiled(curve[:, k], wrong[k])
            if wrong[k]["fault"] == "beta2":
                optimizer.beta2[k], settings[k]["clip"] = 0.9999, math.inf
    elif what == "odd":
        at = int(steps * other.uniform(0.3, 0.7))
        later = n * 4 if n < 4 or (n < 64 and other.random() < 0.5) else n // 4
    optimizer.prepare()
    limit = torch.tensor([s["clip"] for s in settings])
    kept = np.empty((3, steps, r), dtype=np.float32)
    looks = []
    for p in params:
        p.requires_grad_(True)
    for step in range(steps):
        losses = loss_of(step, n if step < at else later)
        grads = list(torch.autograd.grad(losses.sum(), params))
        with torch.no_grad():
            square = sum(g.square().view(r, -1).sum(1) for g in grads)
            norm = square.sqrt()
            scale = (limit / (norm + 1e-6)).clamp(max=1.0)
            grads = [g * optimizer.like(scale, g) for g in grads]
            before = [p.detach().clone() for p in params]
            held = [g.clone() for g in grads] if step % EVERY == 0 else []
            optimizer.step(grads, torch.from_numpy(curve[step].astype(np.float32)))
            weight = torch.cat([b.view(r, -1) for b in before], 1)
            moved = torch.cat([p.view(r, -1) for p in params], 1).sub_(weight).norm(dim=1) / weight.norm(dim=1)
            kept[:, step] = torch.stack([losses, norm, moved]).numpy()
            if held:
                looks.append(looked(optimizer, held, before).numpy())
    every = np.stack(looks, 1)
    out.mkdir(parents=True, exist_ok=True)
    for k, s in enumerate(settings):
        loss, norms, ratio = kept[:, :, k]
        told = wrong[k]["fault"]
        truth = {
            "system": f"ensemble-{task}",
            "kind": "fault" if told else "odd" if what == "odd" and outcome(loss) == "healthy" else outcome(loss),
            "optimizer": kind,
            "batch": n,
            "later": later,
            **{key: v if v != math.inf else None for key, v in s.items()},
            **wrong[k],
            "ends": outcome(loss),
        }
        np.savez_compressed(
            out / f"ensemble-{what}-{number:03}-{k:02}.npz", truth=json.dumps(truth), incidents="[]", loss=loss,
            grad_norm=norms, update_ratio=ratio, lr=curve[:, k].astype(np.float32), step_s=np.full(steps, np.nan, np.float32),
            looks=every[k],
        )  # fmt: skip
