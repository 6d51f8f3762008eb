"""The options file of sr-nano, as traiNNer-redux reads it: strict structs, unknown keys refused.

`1e-6` without a dot is a string in YAML 1.1, so it is refused too where a number is wanted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec


class Strict(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    pass


class Dataset(Strict):
    name: str
    type: str
    dataroot_gt: str
    dataroot_lq: str
    lq_size: int | None = None
    use_hflip: bool = False
    use_rot: bool = False
    num_worker_per_gpu: int = 4
    batch_size_per_gpu: int = 4
    accum_iter: int = 1

    @property
    def made(self) -> tuple[int, int, int]:
        """How many pictures, their size and their seed: the lab makes its data, and the folder's name says which."""
        numbers = re.search(r"scenes-(\d+)x(\d+)-seed(\d+)", self.dataroot_gt)
        if numbers is None:
            raise ValueError(f"{self.dataroot_gt}: the lab makes its pictures; name them scenes-COUNTxSIZE-seedN")
        count, size, seed = (int(n) for n in numbers.groups())
        return count, size, seed


class Datasets(Strict):
    train: Dataset
    val: Dataset


class Paths(Strict):
    pretrain_network_g: str | None = None
    strict_load_g: bool = True
    resume_state: str | None = None


class Loss(Strict):
    type: str
    loss_weight: float = 1.0


class DynamicLossScheduling(Strict):
    enabled: bool = False
    momentum: float = 0.9
    adaptation_rate: float = 0.01
    min_weight: float = 1e-6
    max_weight: float = 100.0
    adaptation_threshold: float = 0.1
    baseline_iterations: int = 100
    enable_monitoring: bool = True


class Train(Strict):
    total_iter: int
    optim_g: dict[str, Any]
    losses: list[Loss]
    scheduler: dict[str, Any]
    optim_d: dict[str, Any] | None = None
    warmup_iter: int = -1
    ema_decay: float = 0
    ema_power: float = 10  # so high that there is no ramp
    ema_update_after_step: int = 0
    grad_clip: bool = False
    dynamic_loss_scheduling: DynamicLossScheduling | None = None


class Metric(Strict):
    type: str
    crop_border: int = 4


class Val(Strict):
    val_enabled: bool
    save_img: bool
    val_freq: int = 1000
    metrics_enabled: bool = True
    metrics: dict[str, Metric] = {}


class Logger(Strict):
    print_freq: int
    save_checkpoint_freq: int
    use_tb_logger: bool
    save_checkpoint_format: str = "safetensors"


class Options(Strict):
    name: str
    scale: int
    num_gpu: int | str
    datasets: Datasets
    network_g: dict[str, Any]
    path: Paths
    train: Train
    val: Val
    logger: Logger
    network_d: dict[str, Any] | None = None
    use_amp: bool = False
    amp_bf16: bool = False
    use_channels_last: bool = True
    fast_matmul: bool = False
    manual_seed: int | None = None


def load_options(path: str) -> tuple[Options, str]:
    """The options and the text they came from, which is echoed into the log."""
    text = Path(path).read_text(encoding="utf-8")
    return msgspec.yaml.decode(text, type=Options, strict=True), text
