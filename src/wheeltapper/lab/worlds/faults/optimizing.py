"""Faults of the settings of optimizer, schedule and size."""

from __future__ import annotations

import random

from wheeltapper.lab.worlds.draw import Draw
from wheeltapper.lab.worlds.faults.table import (
    LOOP,
    SGD,
    SGD_FAMILIES,
    both,
    edit,
    fault,
    put,
    scale,
    share_of_total,
    tiny_data,
)


def many_rates(draw: Draw, r: random.Random) -> None:
    draw.cfg["lr"] = float(f"{draw.cfg['lr'] * r.choice([20, 60, 150, 300]):.2g}")


fault(
    "lr_too_high",
    "setting",
    "learning",
    "the learning rate is tens of times too high",
    "a lower lr",
    many_rates,
    LOOP,
    "ppo",
    want={"clip": False},
)
fault(
    "lr_too_low",
    "setting",
    "learning",
    "the learning rate is hundreds of times too low",
    "a higher lr",
    scale("lr", 0.002, 0.005, 0.01, 0.03),
    LOOP,
    "ppo",
    "dqn",
)
fault(
    "warmup_longer_than_run",
    "setting",
    "schedule",
    "the warmup is many times longer than the run",
    "a shorter warmup",
    share_of_total("warmup_steps", 5, 20, 50),
    want={"schedule": "cosine"},
    also=("lr_too_low",),
)
fault(
    "schedule_too_short",
    "setting",
    "schedule",
    "the schedule ends long before the run",
    "decay over the whole run",
    share_of_total("decay_steps", 0.04, 0.08, 0.15),
    want={"schedule": "linear"},
    also=("lr_too_low",),
)
fault(
    "cosine_tmax_short",
    "setting",
    "schedule",
    "the cosine's period is shorter than the run, so the rate climbs again",
    "T_max as long as the run",
    share_of_total("decay_steps", 0.33, 0.5),
    want={"schedule": "cosine", "optimizer": "adam"},
    cause="schedule_too_short",
    also=("cosine_tmax_short",),
)


def early_milestones(draw: Draw, _r: random.Random) -> None:
    draw.cfg["milestones"] = [int(draw.total_steps * x) for x in (0.01, 0.02, 0.03)]
    draw.cfg["lr_gamma"] = 0.1


fault(
    "milestones_early",
    "setting",
    "schedule",
    "all drops of the rate lie in the first few percent",
    "milestones later",
    early_milestones,
    want={"schedule": "multistep"},
    also=("schedule_too_short", "lr_too_low"),
)
fault(
    "schedule_unit_mismatch",
    "code",
    "schedule",
    "the schedule counts steps and is advanced once per epoch",
    "call scheduler.step() every step",
    edit(
        ("            scheduler.step()\n", ""), ("        epoch += 1", "        epoch += 1\n        scheduler.step()")
    ),
    want={"schedule": "linear", "per_epoch": True},
    also=("warmup_longer_than_run", "lr_too_low"),
)
fault(
    "lr_scaled_by_world_size",
    "setting",
    "learning",
    "the rate is multiplied for a number of processes that is not there",
    "no scaling on one process",
    both(put(world_size=[32, 64]), edit(("lr=cfg.lr", "lr=cfg.lr * cfg.world_size"))),
    also=("lr_too_high",),
)
fault(
    "weight_decay_too_strong",
    "setting",
    "learning",
    "weight decay beats learning",
    "less weight decay",
    put(weight_decay=[3.0, 8.0, 20.0]),
    want={"optimizer": "adamw", "schedule": "constant"},
)
fault(
    "clip_too_small",
    "setting",
    "learning",
    "the clip is far below the gradient's size",
    "a larger clip",
    put(grad_clip=[1e-5, 1e-4, 1e-3]),
    *SGD_FAMILIES,
    want={**SGD, "clip": True},
)
fault(
    "momentum_too_high",
    "setting",
    "learning",
    "momentum so high that it never settles",
    "momentum 0.9",
    put(momentum=[0.99, 0.997, 0.999]),
    *SGD_FAMILIES,
    want={**SGD, "clip": False},
    also=("lr_too_high",),
)
fault(
    "adam_eps_too_large",
    "setting",
    "learning",
    "epsilon swamps Adam's second moment",
    "eps 1e-8",
    put(adam_eps=[1.0, 10.0]),
    want={"optimizer": "adam", "clip": False},
    also=("lr_too_low",),
)
fault(
    "ema_horizon_too_long",
    "setting",
    "evaluation",
    "the average that is evaluated forgets far too slowly",
    "a smaller decay",
    put(ema_decay=[0.999, 0.9999, 0.99999]),
    want={"ema": True},
)
fault(
    "dropout_too_high",
    "setting",
    "learning",
    "nearly everything is dropped",
    "dropout 0.1",
    put(dropout=[0.8, 0.9, 0.95]),
    "tab",
    "cls",
    "forecast",
    "gpt",
    "s2s",
    "gnn",
    "rec",
    "distill",
)
fault(
    "batch_norm_small_batch",
    "setting",
    "learning",
    "batch norm over one or two samples",
    "a larger batch",
    put(batch_size=2),
    "con",
    "cls",
    "seg",
    "det",
    want={"per_epoch": False, "ema": False},
    also=("batch_too_small", "lr_too_high"),
)


fault(
    "overfitting",
    "setting",
    "data",
    "a few dozen samples, learned by heart",
    "more data, or stop early",
    tiny_data,
    "tab",
    "cls",
    "seg",
    "det",
    "ctc",
    "forecast",
    "gpt",
    "s2s",
    "rec",
    "distill",
    "moe",
    "inr",
    "dpo",
    "lora",
    want={"per_epoch": False, "clip": False},
    also=("overfit_tiny_data", "train_val_shift"),
)


def huge_batch(draw: Draw, _r: random.Random) -> None:
    draw.cfg["batch_size"] = draw.cfg["n_train"]
    draw.cfg["epochs"] = max(8, draw.cfg["epochs"] // 2)


fault(
    "too_few_updates",
    "setting",
    "learning",
    "one batch is the whole set: a handful of updates in the run",
    "a smaller batch or many more epochs",
    huge_batch,
    "tab",
    "cls",
    "s2s",
    "gpt",
    "rec",
    "distill",
    "moe",
    "vae",
    "con",
    want={"per_epoch": True, "schedule": "constant", "ema": False},
    also=("lr_too_low", "training_too_short"),
)
fault(
    "early_stop_wrong_mode",
    "setting",
    "code",
    "early stopping waits for a larger loss and ends the run at once",
    "monitor_mode min",
    put(monitor_mode="max", patience=[2, 3]),
    want={"early_stop": True, "schedule": "constant"},
    also=("training_too_short",),
)
fault(
    "plateau_wrong_mode",
    "setting",
    "schedule",
    "ReduceLROnPlateau waits for a larger loss and cuts the rate to nothing",
    "mode min",
    put(plateau_mode="max", plateau_patience=[0, 1], plateau_factor=0.1),
    want={"schedule": "plateau"},
    also=("lr_too_low", "schedule_too_short"),
)
fault(
    "init_too_large",
    "code",
    "learning",
    "weights are drawn far too large",
    "the default initialisation",
    edit(
        (
            "    model = build_model()\n",
            "    model = build_model()\n    for parameter in model.parameters():\n        if parameter.dim() > 1:\n            nn.init.normal_(parameter, std=3.0)\n",
        )
    ),
    want={"optimizer": "adam"},
)
fault(
    "init_zero",
    "code",
    "learning",
    "all weights start at zero, so no unit differs from another",
    "a random initialisation",
    edit(
        (
            "    model = build_model()\n",
            "    model = build_model()\n    for parameter in model.parameters():\n        nn.init.zeros_(parameter)\n",
        )
    ),
    "tab",
    "cls",
    "seg",
    "forecast",
    "distill",
    "inr",
    "vae",
    "ctc",
    "moe",
    cause="dead_network",
    also=("init_zero", "frozen_parameters"),
)
fault(
    "dead_network",
    "code",
    "learning",
    "biases start so low that every unit is dead",
    "bias 0",
    edit(
        (
            "    model = build_model()\n",
            "    model = build_model()\n    for module in model.modules():\n        if isinstance(module, (nn.Linear, nn.Conv2d)):\n            nn.init.constant_(module.bias, -20.0)\n",
        )
    ),
    "tab",
    "distill",
    "inr",
    "cls",
    "det",
    "moe",
)
