"""One run, drawn from its seed: the settings, how the script is built, how it logs."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any

from wheeltapper.lab.worlds.families import Family


@dataclass
class Draw:
    """A run before it is trained. `plan` shapes the script, `cfg` is what the user set, `edits` change the text."""

    family: Family
    seed: int
    cfg: dict[str, Any]
    plan: dict[str, Any]
    edits: list[tuple[str, str]] = field(default_factory=list)
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def total_steps(self) -> int:
        """Updates, or for reinforcement learning environment steps."""
        if "total_timesteps" in self.cfg:
            return int(self.cfg["total_timesteps"])
        if "epochs" in self.cfg:
            return int(self.cfg["epochs"]) * self.steps_per_epoch
        return int(self.cfg["max_steps"])

    @property
    def steps_per_epoch(self) -> int:
        return max(1, int(self.cfg.get("n_train", 0)) // int(self.cfg["batch_size"]))


def log_uniform(r: random.Random, low: float, high: float) -> float:
    value = math.exp(r.uniform(math.log(low), math.log(high)))
    return float(f"{value:.1e}") if r.random() < 0.5 else float(f"{value:.2g}")


def draw_rate(r: random.Random, family: Family, optimizer: str) -> float:
    if optimizer == "sgd":
        assert family.sgd_lr is not None
        low, high = family.sgd_lr
    else:
        low, high = family.adam_lr
    return log_uniform(r, 0.6 * low, 1.4 * high)


def draw_base(family: Family, seed: int, want: dict[str, Any] | None = None) -> Draw:
    """A healthy run. `want` forces parts of the plan, for faults that need them."""
    r = random.Random(f"{family.name}-{seed}")
    want = want or {}
    cfg = family.draw(r)
    if family.own_loop:
        return draw_own_loop(family, seed, cfg, r)
    optimizer = r.choice(["adam", "adam", "adamw", "adamw"] + (["sgd", "sgd"] if family.sgd_lr else ["rmsprop"]))
    if "optimizer" in want and (want["optimizer"] != "sgd" or family.sgd_lr):
        optimizer = want["optimizer"]
    plan: dict[str, Any] = {
        "optimizer": optimizer,
        "schedule": r.choice(["constant", "cosine", "cosine", "linear", "multistep"]),
        "per_epoch": r.random() < 0.35,
        "clip": r.random() < 0.5,
        "log_grad_norm": r.random() < 0.5,
        "accum": 1,
        "ema": r.random() < 0.1,
        "autocast": False,
        "early_stop": False,
        "eval_first": r.random() < 0.3,
        "resume": False,
        "log_speed": r.random() < 0.3,
        "log_memory": False,
    }
    plan.update({k: v for k, v in want.items() if k != "optimizer"})
    if plan["per_epoch"]:
        plan["eval_first"] = False
    if plan["resume"] or plan["early_stop"]:
        plan["ema"] = False
    cfg["batch_size"] = r.choice(family.batches)
    cfg["lr"] = draw_rate(r, family, optimizer)
    draw_length(r, family, cfg, plan)
    draw_optimizer(r, cfg, plan)
    cfg["seed"] = r.randint(0, 9999)
    cfg["data_seed"] = r.randint(0, 9999)
    return Draw(family, seed, cfg, plan)


def draw_length(r: random.Random, family: Family, cfg: dict[str, Any], plan: dict[str, Any]) -> None:
    steps = r.randint(*family.steps)
    if plan["per_epoch"]:
        per_epoch = max(1, cfg["n_train"] // cfg["batch_size"])
        if steps // per_epoch < 14:  # an epoch-wise log needs some rows
            per_epoch = max(4, steps // 20)
            if family.name != "gnn":
                cfg["n_train"] = per_epoch * cfg["batch_size"]
        cfg["epochs"] = max(8, steps // per_epoch)
    else:
        cfg["log_every"] = r.choice([5, 10, 10, 20])
        cfg["eval_every"] = max(cfg["log_every"], steps // r.randint(12, 30) // 5 * 5)
        cfg["max_steps"] = steps // cfg["eval_every"] * cfg["eval_every"]


def draw_optimizer(r: random.Random, cfg: dict[str, Any], plan: dict[str, Any]) -> None:
    total = cfg.get("max_steps") or cfg["epochs"] * max(1, cfg["n_train"] // cfg["batch_size"])
    optimizer, schedule = plan["optimizer"], plan["schedule"]
    if optimizer in ("adamw", "sgd"):
        cfg["weight_decay"] = r.choice([0.0, 1e-4, 1e-2]) if optimizer == "adamw" else r.choice([0.0, 1e-4])
    if optimizer in ("adam", "adamw"):
        cfg["adam_eps"] = 1e-8
    if optimizer == "sgd":
        cfg["momentum"] = r.choice([0.8, 0.9])
        cfg["lr"] = float(f"{cfg['lr'] / 3:.2g}")
    if plan["clip"]:
        cfg["grad_clip"] = r.choice([1.0, 1.0, 5.0])
    if plan["accum"] > 1:
        cfg["accum_steps"] = plan["accum"]
    if schedule != "plateau":
        cfg["schedule"] = schedule
        cfg["warmup_steps"] = r.choice([0, 0, total // 20, total // 10])
    if schedule in ("cosine", "linear"):
        cfg["decay_steps"] = total
    if schedule == "multistep":
        cfg["milestones"] = [int(0.5 * total), int(0.8 * total)]
        cfg["lr_gamma"] = r.choice([0.1, 0.3])
    if schedule == "restarts":
        cfg["restart_every"] = total // r.choice([2, 3, 4])
    if schedule == "plateau":
        cfg.update(plateau_mode="min", plateau_factor=0.5, plateau_patience=4, monitor="loss")
    if plan["early_stop"]:
        cfg.update(monitor="loss", monitor_mode="min", patience=r.choice([6, 8]))
    if plan["ema"]:
        cfg["ema_decay"] = r.choice([0.9, 0.95])
    if plan["resume"]:
        cfg["resume"] = False


def draw_own_loop(family: Family, seed: int, cfg: dict[str, Any], r: random.Random) -> Draw:
    if family.name == "gan":
        cfg["log_every"] = r.choice([10, 20])
        cfg["eval_every"] = cfg["max_steps"] // r.choice([20, 25]) // 10 * 10
    else:
        cfg["log_every"] = 1 if family.name == "ppo" else r.choice([25, 50])
    cfg["seed"] = r.randint(0, 9999)
    if family.name == "gan":
        cfg["data_seed"] = r.randint(0, 9999)
    plan = {"per_epoch": False, "optimizer": "adam", "schedule": "constant", "resume": False}
    return Draw(family, seed, cfg, plan)


def smallest(draw: Draw) -> Draw:
    """The same run cut to a few updates, for tests that only ask whether it trains."""
    cfg = draw.cfg
    for key, value in {"n_train": 64, "n_val": 32, "pretrain_steps": 3, "teacher_steps": 3, "epochs": 2}.items():
        if key in cfg and draw.family.name != "gnn":
            cfg[key] = min(cfg[key], value)
    cfg["batch_size"] = min(cfg["batch_size"], 16)
    if "max_steps" in cfg:
        cfg.update(max_steps=8, log_every=2, eval_every=4)
    if "total_timesteps" in cfg:
        cfg["total_timesteps"] = 3 * cfg["n_envs"] * cfg.get("n_steps", 50)
    if draw.family.name == "gnn" and "epochs" in cfg:
        cfg["epochs"] = 2
    return draw
