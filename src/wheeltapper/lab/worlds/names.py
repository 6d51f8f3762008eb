"""Names that people use: each run has its own words for settings and scores."""

from __future__ import annotations

import random
import re
from typing import Any

SETTINGS = {
    "lr": ["lr", "learning_rate", "base_lr", "init_lr"],
    "batch_size": ["batch_size", "train_batch_size", "bs", "samples_per_batch"],
    "max_steps": ["max_steps", "total_steps", "max_iters", "num_iterations"],
    "epochs": ["epochs", "num_epochs", "max_epochs", "n_epochs"],
    "weight_decay": ["weight_decay", "wd", "weight_decay"],
    "grad_clip": ["grad_clip", "max_grad_norm", "clip_norm", "gradient_clip_val"],
    "warmup_steps": ["warmup_steps", "warmup_iters", "num_warmup_steps", "warmup"],
    "decay_steps": ["decay_steps", "lr_decay_iters", "T_max", "lr_decay_steps"],
    "dropout": ["dropout", "drop_rate", "dropout_p"],
    "hidden": ["hidden", "hidden_dim", "width", "hidden_size"],
    "depth": ["depth", "n_layers", "num_layers"],
    "log_every": ["log_every", "log_interval", "logging_steps", "print_freq"],
    "eval_every": ["eval_every", "eval_interval", "val_every", "eval_steps"],
    "n_train": ["n_train", "train_size", "num_train_samples"],
    "n_val": ["n_val", "val_size", "num_val_samples"],
    "adam_eps": ["adam_eps", "eps", "adam_epsilon"],
    "ema_decay": ["ema_decay", "ema_momentum", "ema_beta"],
    "accum_steps": ["accum_steps", "gradient_accumulation_steps", "grad_accum"],
    "temperature": ["temperature", "tau", "temp"],
    "kl_weight": ["kl_weight", "beta_kl", "kld_weight"],
    "n_classes": ["n_classes", "num_classes"],
    "milestones": ["milestones", "lr_milestones", "lr_steps"],
    "schedule": ["schedule", "lr_schedule", "scheduler", "lr_scheduler_type"],
    "total_timesteps": ["total_timesteps", "num_timesteps"],
    "patience": ["patience", "early_stopping_patience"],
    "d_lr": ["d_lr", "lr_d", "disc_lr"],
    "g_lr": ["g_lr", "lr_g", "gen_lr"],
    "mask_prob": ["mask_prob", "mlm_probability", "mask_ratio"],
    "lora_r": ["lora_r", "rank", "r"],
}
SCORES = {
    "acc": ["acc", "accuracy", "top1"],
    "miou": ["miou", "mIoU", "mean_iou"],
    "map50": ["map50", "mAP50", "mAP_0.5"],
    "ppl": ["ppl", "perplexity"],
    "grad_norm": ["grad_norm", "gnorm", "gradient_norm"],
    "lr": ["lr", "learning_rate"],
    "mem_mb": ["mem_mb", "memory_mb", "rss_mb"],
    "samples_per_s": ["samples_per_s", "samples_per_second", "throughput"],
    "knn_acc": ["knn_acc", "knn_top1"],
    "cer": ["cer", "CER"],
    "recon": ["recon", "recon_loss", "rec_loss"],
    "kl": ["kl", "kld", "kl_loss"],
}


class Names:
    """The words of one run, the same in config, log and script."""

    def __init__(self, seed: int) -> None:
        r = random.Random(f"names-{seed}")
        self.settings = {key: r.choice(words) for key, words in SETTINGS.items()}
        self.scores = {key: r.choice(words) for key, words in SCORES.items()}
        self.object = r.choice(["cfg", "args", "config", "hp", "opt"])
        self.val = r.choice(["val", "val", "eval", "valid", "test"])
        self.train = r.choice(["train", "train", ""])
        self.joint = r.choice(["/", "_", "_"])

    def setting(self, key: str) -> str:
        return self.settings.get(key, key)

    def config(self, cfg: dict[str, Any]) -> dict[str, Any]:
        return {self.setting(key): value for key, value in cfg.items()}

    def score(self, split: str, key: str) -> str:
        word = self.scores.get(key, key)
        if split == "rollout":
            return word
        prefix = self.val if split == "val" else ("" if key in ("lr", "mem_mb", "samples_per_s") else self.train)
        return f"{prefix}{self.joint}{word}" if prefix else word

    def script(self, text: str) -> str:
        return re.sub(r"\bcfg\.(\w+)", lambda m: f"{self.object}.{self.setting(m[1])}", text)
