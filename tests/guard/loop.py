"""A small training with everything a state has: batch norm, dropout, AdamW, a schedule, an EMA."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from wheeltapper.guard import Guard


class Loop:
    """`run` trains to a step of its own; `poison` are the iterations whose batch holds a nan."""

    def __init__(self, seed: int = 0, *, scaler: Any = None, fused: bool = False) -> None:
        torch.manual_seed(seed)
        nn = torch.nn
        self.model: Any = nn.Sequential(
            nn.Linear(6, 24), nn.BatchNorm1d(24), nn.Tanh(), nn.Dropout(0.05), nn.Linear(24, 1)
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3, fused=fused)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 600)
        self.ema = torch.optim.swa_utils.AveragedModel(
            self.model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.95)
        )
        self.scaler = scaler
        self.data = torch.Generator().manual_seed(seed + 100)
        self.iteration = 0
        self.losses: list[float] = []

    def guard(self, policy: str = "watch", run_dir: Path | None = None, **options: Any) -> Guard:
        return Guard(self.model, self.optimizer, self.scheduler, self.scaler, self.ema, policy, run_dir, **options)

    def batch(self) -> tuple[Any, Any]:
        x = torch.randn(32, 6, generator=self.data)
        return x, (x[:, :1] * 2 + torch.sin(2 * x[:, 1:2])) + 0.1 * torch.randn(32, 1, generator=self.data)

    def once(self, guard: Guard | None, poison: bool = False, late: bool = False) -> None:
        x, y = self.batch()
        if poison:
            x = x * float("nan")
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        self.optimizer.zero_grad()
        (self.scaler.scale(loss) if self.scaler else loss).backward()
        if guard is not None and not late:
            guard.step(loss, batch_id=self.iteration)
        if self.scaler:
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            self.optimizer.step()
        if guard is not None and late:
            guard.step(loss, batch_id=self.iteration)
        self.scheduler.step()
        self.ema.update_parameters(self.model)
        self.losses.append(loss.item())
        self.iteration += 1

    def run(self, steps: int, guard: Guard | None = None, poison: tuple[int, ...] = ()) -> None:
        for _ in range(steps):
            self.once(guard, self.iteration in poison)

    def score(self) -> float:
        """Held-out loss of the averaged weights."""
        self.ema.eval()
        test = torch.Generator().manual_seed(9)
        x = torch.randn(512, 6, generator=test)
        with torch.no_grad():
            out = self.ema(x)
        return float(torch.nn.functional.mse_loss(out, x[:, :1] * 2 + torch.sin(2 * x[:, 1:2])))

    def finite(self) -> bool:
        return all(bool(torch.isfinite(t).all()) for t in self.model.state_dict().values())
