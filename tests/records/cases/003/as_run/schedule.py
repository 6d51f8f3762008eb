"""Linear warm-up, then cosine."""

import math


class WarmupCosineLR:
    def __init__(self, optimizer, warmup_steps, max_steps, base_lr, max_lr, min_lr):
        self.optimizer = optimizer
        self.warmup_steps, self.max_steps = warmup_steps, max_steps
        self.base_lr, self.max_lr, self.min_lr = base_lr, max_lr, min_lr
        self.step_count = 0
        self.apply()

    def rate(self):
        if self.step_count < self.warmup_steps:
            return self.base_lr + (self.max_lr - self.base_lr) * self.step_count / self.warmup_steps
        progress = (self.step_count - self.warmup_steps) / max(1, self.max_steps - self.warmup_steps)
        return self.min_lr + 0.5 * (self.max_lr - self.min_lr) * (1 + math.cos(math.pi * min(1.0, progress)))

    def apply(self):
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate()

    def step(self):
        self.step_count += 1
        self.apply()

    def get_last_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self):
        return {"step_count": self.step_count}

    def load_state_dict(self, state):
        self.step_count = state["step_count"]
