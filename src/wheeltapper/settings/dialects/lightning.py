"""PyTorch Lightning: a LightningCLI file (`trainer:`, `model:`, `data:`) or a saved hparams.yaml.

Trainer defaults from lightning 2.6.6. jsonargparse reads 1e-6 as a number and refuses keys it does not know,
but which keys exist depends on the user's classes.
"""

from __future__ import annotations

from pathlib import PurePath

from wheeltapper.settings.dialects.generic import fill, precision_name
from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_number, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "lightning"
TITLE = "PyTorch Lightning"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
YAML_NUMBERS = "1.2"
LAYOUT = Layout(
    config=("hparams.yaml", "config.yaml"),
    metrics=("metrics.csv", "events.out.tfevents.*"),
    checkpoints=("checkpoints/*.ckpt",),
    note="one version_N per launch; `step` counts optimizer updates",
)
FORMATS = ("Lightning",)
KEYS = {
    **table("""
    seed_everything                  any    -
    trainer.max_epochs               int?   -     run.epochs  epochs
    trainer.max_steps                int    -1
    trainer.accumulate_grad_batches  any    1     batch.accumulation
    trainer.gradient_clip_val        float? -
    trainer.gradient_clip_algorithm  str?   -     clip.mode
    trainer.precision                any    -
    trainer.log_every_n_steps        int?   50    log.every  steps
    trainer.check_val_every_n_epoch  int?   -
    trainer.val_check_interval       any    -
    trainer.num_nodes                int    1
    trainer.devices                  any    -
    trainer.deterministic            any    -
    ckpt_path                        str?   -     resume.from
    """),
    **names("any", "model data optimizer lr_scheduler"),
    **names(
        "any",
        "accelerator strategy logger callbacks fast_dev_run min_epochs min_steps max_time limit_train_batches "
        "limit_val_batches limit_test_batches limit_predict_batches overfit_batches num_sanity_val_steps "
        "enable_checkpointing enable_progress_bar enable_model_summary benchmark inference_mode "
        "use_distributed_sampler profiler detect_anomaly barebones plugins sync_batchnorm "
        "reload_dataloaders_every_n_epochs default_root_dir enable_autolog_hparams model_registry "
        # until 1.9 / 2.0
        "gpus auto_lr_find auto_scale_batch_size amp_backend amp_level track_grad_norm replace_sampler_ddp "
        "resume_from_checkpoint checkpoint_callback progress_bar_refresh_rate weights_summary",
        "trainer.",
    ),
}


def recognise(tree: ConfigTree) -> float:
    if PurePath(tree.file).name == "hparams.yaml":
        return 0.55
    trainer = ("trainer.max_epochs", "trainer.accelerator", "trainer.devices", "trainer.precision", "trainer.max_steps")
    return share(tree, trainer, 2) * (
        1.0 if share(tree, ("seed_everything", "model.class_path", "ckpt_path"), 1) else 0.7
    )


def knobs(view: View, found: Found) -> None:
    if view.has("trainer"):
        _trainer(view, found)
    else:  # hparams.yaml says nothing about the Trainer
        found.drop(*list(found))
    seed = view.leaf("seed_everything")
    if seed is not None and as_number(seed.value) is not None:
        found.give("run.seed", seed.value, seed)
    for section, knob in (("optimizer", "optimizer.name"), ("lr_scheduler", "schedule.name")):
        leaf = view.leaf(f"{section}.class_path") or view.leaf(f"{section}._target_")
        if leaf is not None and isinstance(leaf.value, str):
            found.give(knob, leaf.value.rsplit(".", 1)[-1], leaf)
    fill(view, found)
    found.give("schedule.interval", "epochs", default=True, note="unless the module says interval: step")


def _trainer(view: View, found: Found) -> None:
    steps = view.number("trainer.max_steps")
    if steps is not None and steps > 0:
        found.give("run.total_steps", steps, view.leaf("trainer.max_steps"), unit="steps")
    clip = view.number("trainer.gradient_clip_val")
    leaf = view.leaf("trainer.gradient_clip_val")
    found.give("clip.enabled", bool(clip), leaf, default=leaf is None)
    if clip:
        found.give(f"clip.{'value' if found.known('clip.mode') == 'value' else 'norm'}", clip, leaf)
    precision = view.leaf("trainer.precision")
    name = "fp32" if precision is None else precision_name(precision.value)
    if name is not None:
        found.give("precision", name, precision, default=precision is None)
        found.give("amp.scaler", "16-mixed" in str(view.value("trainer.precision")) and name == "fp16", default=True)
    devices, nodes = view.value("trainer.devices"), view.number("trainer.num_nodes") or 1
    count = len(devices) if isinstance(devices, list) else as_number(devices)
    if count is not None and count > 0:
        found.give("world_size", count * nodes, view.leaf("trainer.devices"))
    every = view.leaf("trainer.check_val_every_n_epoch")
    if every is not None and as_number(every.value) is not None:
        found.give("eval.every", every.value, every, unit="epochs")
