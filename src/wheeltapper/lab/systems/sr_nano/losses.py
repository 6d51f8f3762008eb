"""The dynamic loss scheduler and the averaged weights of sr-nano, as the original computes them."""

from __future__ import annotations

import torch
from torch import nn

from wheeltapper.lab.systems.sr_nano.options import DynamicLossScheduling


class DynamicLossScheduler:
    """A weight per loss, recomputed from 1.0 at every iteration: it stays within 1 ± rate * 2."""

    def __init__(self, options: DynamicLossScheduling) -> None:
        self.options = options
        self.smooth: dict[str, float] = {}
        self.baseline: dict[str, float] = {}
        self.iteration = 0

    def weights(self, losses: dict[str, float]) -> dict[str, float]:
        opt, out = self.options, {}
        self.iteration += 1
        for name, value in losses.items():
            before = self.smooth.get(name, value)
            self.smooth[name] = opt.momentum * before + (1 - opt.momentum) * value
            out[name] = 1.0
            if self.iteration == opt.baseline_iterations:
                self.baseline[name] = self.smooth[name]
            elif name in self.baseline:
                velocity = (self.smooth[name] - before) / max(abs(before), 1e-12)
                static = self.smooth[name] / max(self.baseline[name], 1e-12) - 1
                if abs(velocity) > opt.adaptation_threshold:
                    sign = 1 if velocity > 0 else -1
                    out[name] = 1 + sign * opt.adaptation_rate * min(2.0, abs(velocity))
                elif static > 0:
                    out[name] = max(0.1, 1 - opt.adaptation_rate * static)
                else:
                    out[name] = 1 + opt.adaptation_rate * min(1.0, -static)
            out[name] = min(max(out[name], opt.min_weight), opt.max_weight)
        return out


class EMA:
    """decay(t) = clip(1 - (1 + t) ** -power, 0, beta), updated at every step (ema_pytorch)."""

    def __init__(self, net: nn.Module, beta: float, power: float, after: int) -> None:
        self.weights = {name: value.detach().clone() for name, value in net.state_dict().items()}
        self.beta, self.power, self.after, self.step = beta, power, after, 0

    def decay(self) -> float:
        t = max(0, self.step - self.after - 1)
        ramp: float = 1 - (1 + t) ** -self.power
        return min(max(ramp, 0.0), self.beta)

    def update(self, net: nn.Module) -> None:
        self.step += 1
        decay = self.decay()
        with torch.no_grad():
            for name, value in net.state_dict().items():
                self.weights[name].lerp_(value.to(self.weights[name].dtype), 1 - decay)
