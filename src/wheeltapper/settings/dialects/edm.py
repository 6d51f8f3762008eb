"""NVlabs EDM and EDM2: training_options.json and the command line. As of edm 008a4e5 and edm2 4bf8162.

Lengths are counted in images. EDM: lr_rampup 10 Mimg, EMA by half-life; EDM2: inverse square-root decay after
ref_batches, power-function EMA. Neither has a loss scaler: `loss_scaling` is a constant.
"""

from __future__ import annotations

import re
from typing import Any

from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_number, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "edm"
TITLE = "EDM / EDM2"
UNKNOWN: Policy = "unknown"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("training_options.json",),
    metrics=("stats.jsonl", "log.txt"),
    checkpoints=("network-snapshot-*.pkl", "training-state-*.pt", "training-state-*.pkl"),
    note="snapshots are the average, training states the raw weights",
)
FORMATS = ("EDM", "StyleGAN")
KEYS = {
    **table("""
    batch_size                 int    -  batch.global
    batch_gpu                  int?   -  batch.per_device
    seed                       int    -  run.seed
    loss_scaling               float  1  amp.static_scale
    optimizer_kwargs.class_name str   -
    optimizer_kwargs.lr        float  -  optimizer.lr
    optimizer_kwargs.betas     list   -  optimizer.betas
    optimizer_kwargs.eps       float  -  optimizer.eps
    network_kwargs.dropout     float  -  augment.dropout
    loss_kwargs.P_mean         float  -  diffusion.P_mean
    loss_kwargs.P_std          float  -  diffusion.P_std
    loss_kwargs.sigma_data     float  -  diffusion.sigma_data
    dataset_kwargs.max_size    int    -  data.train_size
    data_loader_kwargs.num_workers int - data.workers
    lr_kwargs.ref_lr           float  -  optimizer.lr
    """),
    **names("any", "total_kimg total_nimg ema_halflife_kimg kimg_per_tick snapshot_ticks lr_kwargs network_kwargs"),
}


def recognise(tree: ConfigTree) -> float:
    if tree.format in ("argv", "shell"):
        script = str(tree.get("script", ""))
        image_options = share(tree, ("precond", "duration", "batch_gpu", "preset", "outdir", "ls"), 3)
        return (
            1.0 if script.endswith("train_edm2.py") else image_options * (1.0 if script.endswith("train.py") else 0.5)
        )
    return share(
        tree, ("total_kimg", "total_nimg", "loss_kwargs", "network_kwargs", "optimizer_kwargs", "lr_kwargs"), 3
    )


def images(value: Any) -> float | None:
    """`128Ki`, `8Mi`, `2Gi` or a plain number of images.

    >>> images("8Mi"), images(2048)
    (8388608, 2048)
    """
    match = re.fullmatch(r"(\d+)(Ki|Mi|Gi)", str(value))
    if match:
        return int(match.group(1)) << {"Ki": 10, "Mi": 20, "Gi": 30}[match.group(2)]
    return as_number(value)


def knobs(view: View, found: Found) -> None:
    second = view.has("lr_kwargs") or view.has("total_nimg") or view.has("preset")
    if view.has("outdir") and not view.has("optimizer_kwargs"):
        _command_line(view, found, second)
    kimg, nimg = view.number("total_kimg"), view.number("total_nimg")
    if kimg is not None:
        found.give("run.total_samples", kimg * 1000, view.leaf("total_kimg"))
    elif nimg is not None:
        found.give("run.total_samples", nimg, view.leaf("total_nimg"))
    halflife = view.number("ema_halflife_kimg")
    if halflife is not None:
        found.give("ema.halflife", halflife * 1000, view.leaf("ema_halflife_kimg"))
    found.give("ema.enabled", True, default=True)
    found.give("ema.impl", "EDM2 power function" if second else "EDM half-life", default=True)
    name = view.leaf("optimizer_kwargs.class_name")
    if name is not None:
        found.give("optimizer.name", str(name.value).rsplit(".", 1)[-1], name)
    # rampup: lr_rampup_kimg=10000 (EDM), rampup_Mimg=10 (EDM2)
    found.give("schedule.warmup", 10_000_000, unit="samples", default=True)
    found.give("schedule.name", "inverse-sqrt" if second else "constant", default=True)
    fp16 = view.leaf("network_kwargs.use_fp16") or view.leaf("fp16")
    if fp16 is not None:
        found.give("precision", "fp16" if fp16.value in (True, 1) else "fp32", fp16)
    found.give("amp.scaler", False, default=True)
    precond = view.leaf("network_kwargs.class_name")
    if precond is not None:
        found.give("diffusion.precond", str(precond.value).rsplit(".", 1)[-1], precond)
    loss = str(view.value("loss_kwargs.class_name", ""))
    if loss.endswith(".EDMLoss") or (not second and view.value("precond", "edm") == "edm" and view.has("outdir")):
        for knob, value in (("P_mean", -1.2), ("P_std", 1.2), ("sigma_data", 0.5)):
            if f"diffusion.{knob}" not in found:
                found.give(f"diffusion.{knob}", value, default=True)


def _command_line(view: View, found: Found, second: bool) -> None:
    found.take("optimizer.lr", view, "lr")
    for option, knob in (("batch", "batch.global"), ("batch_gpu", "batch.per_device")):
        leaf = view.first(option)
        count = None if leaf is None else images(leaf.value)
        if count:
            found.give(knob, count, leaf)
    duration = view.first("duration")
    if duration is not None:
        length = images(duration.value) if second else as_number(duration.value)
        if length is not None:
            found.give("run.total_samples", length if second else length * 1_000_000, duration)
    ema = view.number("ema")
    if ema is not None and not second:
        found.give("ema.halflife", ema * 1_000_000, view.leaf("ema"))
    if not second:  # defaults of EDM's click options; EDM2 takes them from its preset
        for knob, value in (("optimizer.lr", 1e-3), ("batch.global", 512), ("run.total_samples", 200e6)):
            if knob not in found:
                found.give(knob, value, default=True)
    for option in ("P_mean", "P_std"):
        found.take(f"diffusion.{option}", view, option)
    found.take("augment.dropout", view, "dropout")
    found.take("diffusion.precond", view, "precond")
    found.take("amp.static_scale", view, "ls")
    found.take("resume.from", view, "resume")
    found.take("finetune.from", view, "transfer")
