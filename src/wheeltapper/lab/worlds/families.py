"""The families of trainings: what is drawn for each, which score counts, and which settings are its own."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from wheeltapper.lab.worlds import tasks
from wheeltapper.lab.worlds.tasks import Config


@dataclass(frozen=True)
class Family:
    name: str
    main: str  # the score that counts
    mode: str  # min or max
    draw: Callable[[random.Random], Config]
    adam_lr: tuple[float, float] = (1e-3, 3e-3)
    sgd_lr: tuple[float, float] | None = (0.03, 0.1)
    steps: tuple[int, int] = (900, 1800)
    parts: tuple[str, ...] = ()  # texts before the family's own
    own_loop: bool = False
    words: str = ""  # what a user would call it
    classifies: bool = False
    batch_norm: bool = False
    batches: tuple[int, ...] = (16, 32, 48, 64)
    defaults: Config = field(default_factory=dict)


TEXT = ("_text",)
ENV = ("_env",)
FAMILIES: dict[str, Family] = {
    f.name: f
    for f in [
        Family("tab", "loss", "min", tasks.tab, words="table regression"),
        Family(
            "cls", "acc", "max", tasks.cls, classifies=True, batch_norm=True, steps=(400, 800), words="image classifier"
        ),
        Family(
            "seg",
            "miou",
            "max",
            tasks.seg,
            classifies=True,
            batch_norm=True,
            steps=(240, 420),
            batches=(8, 12, 16),
            words="segmentation",
        ),
        Family(
            "det", "map50", "max", tasks.det, batch_norm=True, steps=(600, 1200), batches=(16, 32), words="detection"
        ),
        Family(
            "ctc",
            "cer",
            "min",
            tasks.ctc,
            adam_lr=(3e-3, 6e-3),
            sgd_lr=None,
            steps=(250, 400),
            batches=(16, 32),
            words="speech ctc",
        ),
        Family("forecast", "mae", "min", tasks.forecast, steps=(700, 1500), words="forecasting"),
        Family(
            "rec",
            "rmse",
            "min",
            tasks.rec,
            sgd_lr=None,
            adam_lr=(2e-3, 6e-3),
            batches=(64, 128),
            steps=(1000, 2200),
            words="recommender",
        ),
        Family(
            "gnn",
            "acc",
            "max",
            tasks.gnn,
            adam_lr=(5e-3, 1e-2),
            sgd_lr=None,
            batches=(50, 75),
            steps=(300, 800),
            words="graph network",
        ),
        Family("inr", "psnr", "max", tasks.inr, sgd_lr=None, batches=(64, 128), words="coordinate network"),
        Family(
            "gpt",
            "loss",
            "min",
            tasks.language,
            sgd_lr=None,
            adam_lr=(2e-3, 5e-3),
            steps=(350, 600),
            parts=TEXT,
            batches=(16, 32),
            words="language model",
        ),
        Family(
            "mlm",
            "loss",
            "min",
            tasks.mlm,
            sgd_lr=None,
            adam_lr=(2e-3, 5e-3),
            steps=(400, 600),
            parts=TEXT,
            batches=(32,),
            words="masked language model",
        ),
        Family(
            "s2s",
            "acc",
            "max",
            tasks.s2s,
            sgd_lr=None,
            adam_lr=(3e-3, 6e-3),
            steps=(350, 550),
            batches=(32, 48),
            words="sequence to sequence",
        ),
        Family(
            "moe",
            "acc",
            "max",
            tasks.moe,
            sgd_lr=None,
            adam_lr=(2e-3, 4e-3),
            steps=(700, 1300),
            words="mixture of experts",
        ),
        Family("distill", "acc", "max", tasks.distill, sgd_lr=(0.03, 0.06), steps=(900, 1800), words="distillation"),
        Family(
            "lora",
            "loss",
            "min",
            tasks.lora,
            sgd_lr=None,
            adam_lr=(5e-3, 1e-2),
            steps=(300, 500),
            parts=TEXT,
            batches=(16, 32),
            words="lora fine-tuning",
        ),
        Family(
            "dpo",
            "rewards_accuracy",
            "max",
            tasks.dpo,
            sgd_lr=None,
            adam_lr=(5e-4, 1e-3),
            steps=(150, 260),
            parts=TEXT,
            batches=(16, 32),
            words="dpo",
        ),
        Family(
            "con",
            "knn_acc",
            "max",
            tasks.con,
            sgd_lr=None,
            batch_norm=True,
            batches=(48, 64, 96),
            steps=(600, 1200),
            words="contrastive learning",
        ),
        Family("vae", "recon", "min", tasks.vae, sgd_lr=None, steps=(900, 1800), words="vae"),
        Family(
            "ddpm",
            "swd",
            "min",
            tasks.ddpm,
            sgd_lr=None,
            adam_lr=(2e-3, 4e-3),
            batches=(128, 256),
            steps=(800, 1400),
            words="diffusion",
        ),
        Family("gan", "swd", "min", tasks.gan, own_loop=True, words="gan"),
        Family("ppo", "ep_rew_mean", "max", tasks.ppo, parts=ENV, own_loop=True, words="ppo"),
        Family("dqn", "ep_rew_mean", "max", tasks.dqn, parts=ENV, own_loop=True, words="dqn"),
    ]
}
