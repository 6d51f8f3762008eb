"""OpenMMLab: mmengine configs (optim_wrapper, param_scheduler, train_cfg) and mmcv 1 (optimizer, lr_config).

Defaults from mmengine 0.10.7 and mmcv 1.x. An EMA `momentum` multiplies the NEW weights here, so it is turned
round. Config keys are free Python names; what no registry asks for is ignored.
"""

from __future__ import annotations

from wheeltapper.settings.dialects._torch import optimizer_knobs
from wheeltapper.settings.dialects.generic import precision_name
from wheeltapper.settings.dialects.schema import Key, Layout, Policy, Problem, View, as_bool, place_of, share
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree, Leaf

NAME = "mmengine"
TITLE = "OpenMMLab"
UNKNOWN: Policy = "unknown"
REQUIRED: tuple[str, ...] = ()
KEYS: dict[str, Key] = {}
LAYOUT = Layout(
    config=("*.py", "vis_data/config.py"),
    metrics=("*.log.json", "*/vis_data/scalars.json", "*/vis_data/*.json"),
    checkpoints=("epoch_*.pth", "iter_*.pth", "latest.pth", "best_*.pth"),
)
FORMATS = ("mmdet", "mmengine", "mmcv", "OpenMMLab")


def recognise(tree: ConfigTree) -> float:
    new = share(tree, ("optim_wrapper", "param_scheduler", "train_cfg", "default_hooks", "train_dataloader"), 2)
    old = share(tree, ("lr_config", "optimizer_config", "checkpoint_config", "log_config", "runner", "workflow"), 3)
    return max(new, old)


def knobs(view: View, found: Found) -> None:
    if view.has("lr_config") or view.has("optimizer_config") or view.has("runner"):
        _mmcv(view, found)
    else:
        _mmengine(view, found)
    found.take("model.name", view, "model.type")
    found.take("model.classes", view, "model.bbox_head.num_classes", "model.head.num_classes", "num_classes")
    found.take("finetune.from", view, "load_from", "init_cfg.checkpoint", "model.init_cfg.checkpoint")
    _ema(view, found)


def _mmengine(view: View, found: Found) -> None:
    optimizer_knobs(view, found, "optim_wrapper.optimizer")
    wrapper = view.leaf("optim_wrapper.type")
    amp = wrapper is not None and str(wrapper.value).rsplit(".", 1)[-1].startswith("AmpOptimWrapper")
    dtype = precision_name(view.value("optim_wrapper.dtype", "float16")) or "fp16"
    found.give("precision", dtype if amp else "fp32", wrapper, default=wrapper is None)
    found.give("amp.scaler", amp, wrapper, default=True)
    if found.take("clip.norm", view, "optim_wrapper.clip_grad.max_norm") is None:
        found.take("clip.value", view, "optim_wrapper.clip_grad.clip_value")
    found.give("clip.enabled", view.has("optim_wrapper.clip_grad.max_norm") or "clip.value" in found, default=True)
    if found.take("batch.accumulation", view, "optim_wrapper.accumulative_counts") is None:
        found.give("batch.accumulation", 1, default=True)
    found.take("batch.per_device", view, "train_dataloader.batch_size")
    found.take("data.workers", view, "train_dataloader.num_workers")
    found.take("eval.batch", view, "val_dataloader.batch_size")
    found.take("run.epochs", view, "train_cfg.max_epochs", unit="epochs")
    found.take("run.total_steps", view, "train_cfg.max_iters", unit="micro_steps")
    by_epoch = "run.epochs" in found
    found.take("eval.every", view, "train_cfg.val_interval", unit="epochs" if by_epoch else "micro_steps")
    hook_by_epoch = as_bool(view.value("default_hooks.checkpoint.by_epoch", by_epoch))
    unit = "epochs" if hook_by_epoch else "micro_steps"
    found.take("checkpoint.every", view, "default_hooks.checkpoint.interval", unit=unit)
    found.take("log.every", view, "default_hooks.logger.interval", unit="micro_steps")
    found.take("run.seed", view, "randomness.seed")
    resume = view.leaf("resume")
    if resume is not None and as_bool(resume.value):
        found.give("resume.auto", True, resume)
    _param_scheduler(view, found)


def _param_scheduler(view: View, found: Found) -> None:
    """A list of schedulers, each with begin and end; the first rising one is the warm-up."""
    single = view.has("param_scheduler.type")
    sections = ["param_scheduler"] if single else [f"param_scheduler.{i}" for i in range(16)]
    for section in sections:
        kind = view.leaf(f"{section}.type")
        if kind is None:
            continue
        name = str(kind.value).rsplit(".", 1)[-1]
        unit = "epochs" if as_bool(view.value(f"{section}.by_epoch", True)) else "micro_steps"
        if name in ("LinearLR", "ConstantLR", "QuadraticWarmupLR") and "schedule.warmup" not in found:
            end = view.first(f"{section}.end", f"{section}.total_iters")
            if end is not None:
                found.give("schedule.warmup", end.value, end, unit=unit)
                continue
        found.give("schedule.name", name, kind)
        found.take("schedule.milestones", view, f"{section}.milestones", unit=unit)
        found.take("schedule.gamma", view, f"{section}.gamma")
        found.take("schedule.t_max", view, f"{section}.T_max", unit=unit)
        found.take("schedule.min_lr", view, f"{section}.eta_min")
        found.take("schedule.min_lr_ratio", view, f"{section}.eta_min_ratio")
        found.take("schedule.power", view, f"{section}.power")
        found.take("schedule.total", view, f"{section}.end", unit=unit)


def _mmcv(view: View, found: Found) -> None:
    optimizer_knobs(view, found, "optimizer")
    found.take("schedule.name", view, "lr_config.policy")
    by_epoch = as_bool(view.value("lr_config.by_epoch", True)) is not False
    unit = "epochs" if by_epoch else "micro_steps"
    found.take("schedule.milestones", view, "lr_config.step", unit=unit)
    if found.take("schedule.gamma", view, "lr_config.gamma") is None and "schedule.milestones" in found:
        found.give("schedule.gamma", 0.1, default=True)
    found.take("schedule.min_lr", view, "lr_config.min_lr")
    found.take("schedule.min_lr_ratio", view, "lr_config.min_lr_ratio")
    found.take("schedule.power", view, "lr_config.power")
    if view.value("lr_config.warmup"):
        in_epochs = as_bool(view.value("lr_config.warmup_by_epoch", False))
        found.take("schedule.warmup", view, "lr_config.warmup_iters", unit="epochs" if in_epochs else "micro_steps")
    elif view.has("lr_config"):
        found.give("schedule.warmup", 0, unit="steps", default=True)  # no policy named: warmup_iters is not used
    if found.take("clip.norm", view, "optimizer_config.grad_clip.max_norm") is not None:
        found.give("clip.enabled", True, found["clip.norm"].leaf)
    elif view.has("optimizer_config"):
        found.give("clip.enabled", False, view.leaf("optimizer_config.grad_clip"))
    found.take("batch.accumulation", view, "optimizer_config.cumulative_iters")
    found.take("batch.per_device", view, "data.samples_per_gpu", "data.imgs_per_gpu")
    found.take("data.workers", view, "data.workers_per_gpu")
    found.take("run.epochs", view, "runner.max_epochs", "total_epochs", unit="epochs")
    found.take("run.total_steps", view, "runner.max_iters", "total_iters", unit="micro_steps")
    epochs = "run.epochs" in found
    found.take("checkpoint.every", view, "checkpoint_config.interval", unit="epochs" if epochs else "micro_steps")
    found.take("eval.every", view, "evaluation.interval", unit="epochs" if epochs else "micro_steps")
    found.take("log.every", view, "log_config.interval", unit="micro_steps")
    found.take("run.seed", view, "seed")
    found.take("resume.from", view, "resume_from")
    fp16 = view.leaf("fp16.loss_scale")
    if fp16 is not None:
        found.give("precision", "fp16", fp16)
        found.give("amp.scaler", fp16.value == "dynamic", fp16)
        if fp16.value != "dynamic":
            found.give("amp.static_scale", fp16.value, fp16)


def _ema_momentum(view: View) -> tuple[Leaf | None, bool]:
    for path, leaf in view.index.items():
        if path[0] == "custom_hooks" and path[-1] == "type" and str(leaf.value).endswith("EMAHook"):
            section = ".".join(path[:-1])
            return view.leaf(f"{section}.momentum"), True
    return None, False


def _ema(view: View, found: Found) -> None:
    leaf, present = _ema_momentum(view)
    found.give("ema.enabled", present, leaf, default=leaf is None)
    if present:
        momentum = 0.0002 if leaf is None else leaf.value
        if isinstance(momentum, (int, float)):
            note = "momentum here weighs the new weights: the decay is 1 - momentum"
            found.give("ema.decay", round(1 - momentum, 12), leaf, default=leaf is None, note=note)
            found.give("ema.impl", "mmengine", default=True)


def check(view: View) -> list[Problem]:
    leaf, _ = _ema_momentum(view)
    if leaf is None or not isinstance(leaf.value, (int, float)) or leaf.value <= 0.5:
        return []
    text = f"EMA momentum {leaf.value} weighs the NEW weights here: the average follows the last steps only"
    hint = f"For a decay of {leaf.value} write momentum={1 - leaf.value:.6g}."
    return [Problem("ema-momentum", text, place_of(leaf), "is", hint, "custom_hooks.momentum")]
