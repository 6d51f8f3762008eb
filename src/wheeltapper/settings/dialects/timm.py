"""timm's train.py (args.yaml, command lines). As of timm aa4b5850 (2026-08), older spellings included.

Epoch-counted schedule unless sched_on_updates; unknown options stop argparse, but forks add their own.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.generic import precision_name
from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_bool, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "timm"
TITLE = "timm train.py"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("args.yaml",),
    metrics=("summary.csv",),
    checkpoints=("checkpoint-*.pth.tar", "last.pth.tar", "model_best.pth.tar"),
    note="with model_ema, summary.csv's eval columns are those of the average",
)
FORMATS = ("timm",)
KEYS = {
    **table("""
    model              str     'resnet50'  model.name
    num_classes        int?    None        model.classes
    img_size           int?    None        model.image_size
    batch_size         int     128         batch.per_device
    grad_accum_steps   int     1           batch.accumulation
    grad_checkpointing bool    False       model.checkpointing
    opt                str     'sgd'       optimizer.name
    opt_eps            float?  None        optimizer.eps
    opt_betas          list?   None        optimizer.betas
    momentum           float   0.9         optimizer.momentum
    weight_decay       float   2e-05       optimizer.weight_decay
    layer_decay        float?  None        optimizer.layer_decay
    clip_grad          float?
    clip_mode          str     'norm'      clip.mode
    sched              str     'cosine'    schedule.name
    sched_on_updates   bool    False
    lr                 float?  None        optimizer.lr
    lr_base            float   0.1
    lr_base_size       int     256
    warmup_lr          float   1e-05       schedule.warmup_start
    min_lr             float   0           schedule.min_lr
    epochs             int     300         run.epochs  epochs
    warmup_epochs      int     5           schedule.warmup  epochs
    cooldown_epochs    int     0           schedule.cooldown  epochs
    patience_epochs    int     10          schedule.patience  epochs
    decay_milestones   list
    decay_epochs       float   90
    decay_rate         float   0.1         schedule.gamma
    smoothing          float   0.1         loss.label_smoothing
    mixup              float   0.0         augment.mixup
    cutmix             float   0.0         augment.cutmix
    mixup_prob         float   1.0         augment.mixup_prob
    reprob             float   0.0         augment.random_erasing
    drop               float   0.0         augment.dropout
    drop_path          float?  None        augment.drop_path
    model_ema          bool    False       ema.enabled
    model_ema_decay    float   0.9998
    seed               int     42          run.seed
    log_interval       int     50          log.every  micro_steps
    workers            int     4           data.workers
    checkpoint_hist    int     10          checkpoint.keep
    validation_batch_size int? None        eval.batch
    dataset            str     -           data.name
    """),
    **names(
        "any",
        "data data_dir train_split val_split train_num_samples val_num_samples dataset_download class_map "
        "input_img_mode input_key target_key dataset_trust_remote_code pretrained pretrained_path initial_checkpoint "
        "resume no_resume_opt gp in_chans input_size crop_pct mean std interpolation channels_last fuser fast_norm "
        "model_kwargs head_init_scale head_init_bias torchcompile torchcompile_mode torchscript device amp amp_dtype "
        "amp_impl model_dtype no_ddp_bb synchronize_step local_rank device_modules layer_decay_min_scale "
        "layer_decay_no_opt_scale opt_kwargs lr_base_scale lr_noise lr_noise_pct lr_noise_std lr_cycle_mul "
        "lr_cycle_decay lr_cycle_limit lr_k_decay epoch_repeats start_epoch warmup_prefix no_aug train_crop_mode scale "
        "ratio hflip vflip color_jitter color_jitter_prob grayscale_prob gaussian_blur_prob aa aug_repeats aug_splits "
        "jsd_loss bce_loss bce_sum bce_target_thresh bce_pos_weight remode recount resplit cutmix_minmax "
        "mixup_switch_prob mixup_mode mixup_off_epoch train_interpolation drop_connect drop_block bn_momentum bn_eps "
        "bn_tf sync_bn dist_bn split_bn model_ema_force_cpu model_ema_warmup worker_seeding val_interval "
        "recovery_interval save_images apex_amp native_amp pin_mem no_prefetcher output experiment eval_metric tta "
        "b vb j use_multi_epochs_loader log_wandb wandb_project wandb_tags wandb_resume_id",
    ),
}
_SGD_LIKE = ("sgd", "momentum", "nesterov", "rmsprop")


def recognise(tree: ConfigTree) -> float:
    own = (
        "lr_cycle_limit",
        "lr_k_decay",
        "checkpoint_hist",
        "recovery_interval",
        "epoch_repeats",
        "aug_splits",
        "lr_noise_pct",
        "model_ema_force_cpu",
        "mixup_switch_prob",
        "train_interpolation",
        "use_multi_epochs_loader",
        "warmup_prefix",
    )
    common = ("sched", "opt", "model_ema", "reprob", "clip_grad", "warmup_lr", "smoothing", "drop_path", "aa", "amp")
    return max(share(tree, own, 4), 0.5 * share(tree, common, 6) + 0.25 * share(tree, own, 1))


def knobs(view: View, found: Found) -> None:
    if found.known("optimizer.lr") is None:
        # lr = lr_base * (global batch / lr_base_size), square root for adaptive optimizers: needs the world size
        for key, knob, value in (
            ("lr_base", "optimizer.lr_base", 0.1),
            ("lr_base_size", "optimizer.lr_base_size", 256),
        ):
            if found.take(knob, view, key) is None:
                found.give(knob, value, default=True)
    opt = str(found.known("optimizer.name") or "").lower()
    if not opt.startswith(_SGD_LIKE) and "optimizer.momentum" in found:
        found.drop("optimizer.momentum")
    found.take("batch.per_device", view, "batch_size", "b")
    found.take("data.workers", view, "workers", "j")
    clip = view.number("clip_grad")
    mode = found.known("clip.mode") or "norm"
    found.give("clip.enabled", clip is not None, view.leaf("clip_grad"), default=view.leaf("clip_grad") is None)
    if clip is not None and mode in ("norm", "value"):
        found.give(f"clip.{mode}", clip, view.leaf("clip_grad"))
    found.give("schedule.interval", "steps" if as_bool(view.value("sched_on_updates")) else "epochs", default=True)
    sched = str(found.known("schedule.name") or "")
    if sched in ("step", "multistep"):
        if sched == "multistep":
            found.take("schedule.milestones", view, "decay_milestones", "decay_epochs", unit="epochs")
        else:
            found.take("schedule.step_size", view, "decay_epochs", unit="epochs")
    else:
        found.drop("schedule.gamma")
    if sched != "plateau":
        found.drop("schedule.patience")
    if found.known("ema.enabled"):
        leaf = view.leaf("model_ema_decay")
        found.give("ema.decay", 0.9998 if leaf is None else leaf.value, leaf, default=leaf is None)
        found.give("ema.every", 1, default=True)
        found.give("ema.impl", "timm", default=True)
    _precision(view, found)
    _start(view, found)


def _precision(view: View, found: Found) -> None:
    leaf = next((x for x in map(view.leaf, ("amp", "native_amp", "apex_amp")) if x and as_bool(x.value)), None)
    if leaf is None:
        found.give("precision", "fp32", view.leaf("amp"), default=view.leaf("amp") is None)
        return
    name = precision_name(view.value("amp_dtype", "float16")) or "fp16"
    found.give("precision", name, view.leaf("amp_dtype") or leaf)
    found.give("amp.scaler", name == "fp16", leaf, default=True)
    if name == "fp16":
        found.give("amp.init_scale", 65536.0, default=True)
        found.give("amp.growth_interval", 2000, default=True)


def _start(view: View, found: Found) -> None:
    resume = view.leaf("resume")
    if resume is not None and resume.value:
        found.give("resume.from", resume.value, resume)
    for key in ("initial_checkpoint", "pretrained_path"):
        leaf = view.leaf(key)
        if leaf is not None and leaf.value:
            found.give("finetune.from", leaf.value, leaf)
    leaf = view.leaf("pretrained")
    if leaf is not None and as_bool(leaf.value) and "finetune.from" not in found:
        found.give("finetune.from", "pretrained", leaf)
