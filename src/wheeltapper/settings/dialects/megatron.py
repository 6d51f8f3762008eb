"""Megatron-LM and Megatron-DeepSpeed arguments: the printed table, or the launch script.

Defaults from megatron/training/arguments.py (2021-2026 agree on those given). Argparse refuses an unknown
option, but every fork adds its own.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_bool, as_number, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "megatron"
TITLE = "Megatron-LM"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("*.sh", "*.slurm"),
    metrics=("*.out", "*.log", "tensorboard/events.out.tfevents.*"),
    checkpoints=("iter_*/", "global_step*/", "latest_checkpointed_iteration.txt"),
)
FORMATS = ("Megatron",)
KEYS = {
    **table("""
    lr                    float  -         optimizer.lr
    min_lr                float  0.0       schedule.min_lr
    lr_decay_style        str    'linear'  schedule.name
    lr_decay_iters        int?   -
    lr_decay_samples      int?   -
    lr_warmup_fraction    float? -
    lr_warmup_iters       int    -
    lr_warmup_samples     int    -
    weight_decay          float  0.01      optimizer.weight_decay
    adam_beta1            float  0.9
    adam_beta2            float  0.999
    adam_eps              float  1e-08     optimizer.eps
    optimizer             str    'adam'    optimizer.name
    clip_grad             float  1.0
    micro_batch_size      int    -         batch.per_device
    global_batch_size     int    -         batch.global
    train_iters           int    -         run.total_steps  steps
    train_samples         int    -         run.total_samples
    seed                  int    1234      run.seed
    world_size            int    -         world_size
    fp16                  bool   False
    bf16                  bool   False
    loss_scale            float? -         amp.static_scale
    initial_loss_scale    float  -
    loss_scale_window     float  -
    seq_length            int    -         seq_len
    hidden_dropout        float  0.1       augment.dropout
    eval_interval         int    1000      eval.every  steps
    save_interval         int    -         checkpoint.every  steps
    log_interval          int    100       log.every  steps
    num_workers           int    2         data.workers
    """),
    **names(
        "any",
        "tensor_model_parallel_size pipeline_model_parallel_size data_parallel_size num_layers hidden_size "
        "num_attention_heads max_position_embeddings ffn_hidden_size attention_dropout init_method_std min_loss_scale "
        "hysteresis load save finetune rampup_batch_size data_path vocab_file merge_file tokenizer_type split",
    ),
}


def recognise(tree: ConfigTree) -> float:
    own = (
        "tensor_model_parallel_size",
        "pipeline_model_parallel_size",
        "lr_decay_style",
        "micro_batch_size",
        "global_batch_size",
        "init_method_std",
        "train_iters",
        "lr_warmup_fraction",
        "initial_loss_scale",
        "hidden_dropout",
        "clip_grad",
        "num_attention_heads",
    )
    return share(tree, own, 5)


def knobs(view: View, found: Found) -> None:
    betas = view.first("adam_beta1"), view.first("adam_beta2")
    values = [0.9 if betas[0] is None else betas[0].value, 0.999 if betas[1] is None else betas[1].value]
    found.give("optimizer.betas", values, betas[0] or betas[1], default=not any(betas))
    _schedule(view, found)
    clip = view.leaf("clip_grad")
    norm = 1.0 if clip is None else view.number("clip_grad")
    found.give("clip.enabled", bool(norm and norm > 0), clip, default=clip is None)
    if norm and norm > 0:
        found.give("clip.norm", norm, clip, default=clip is None)
    _precision(view, found)
    _accumulation(view, found)
    load = view.first("load")
    if load is not None:
        found.give("finetune.from" if as_bool(view.value("finetune")) else "resume.auto", load.value, load)
        if not as_bool(view.value("finetune")):
            found.give("resume.auto", True, load)


def _schedule(view: View, found: Found) -> None:
    if found.take("schedule.total", view, "lr_decay_iters", unit="steps") is None:
        found.take("schedule.total", view, "lr_decay_samples", unit="samples")
    fraction = view.number("lr_warmup_fraction")
    if fraction is not None:
        found.give("schedule.warmup", fraction, view.leaf("lr_warmup_fraction"), unit="fraction")
        return
    samples, steps = view.number("lr_warmup_samples"), view.number("lr_warmup_iters")
    if samples:
        found.give("schedule.warmup", samples, view.leaf("lr_warmup_samples"), unit="samples")
    elif steps is not None:
        found.give("schedule.warmup", steps, view.leaf("lr_warmup_iters"), unit="steps")


def _precision(view: View, found: Found) -> None:
    for name in ("bf16", "fp16"):
        leaf = view.leaf(name)
        if leaf is not None and as_bool(leaf.value):
            found.give("precision", name, leaf)
            static = as_number(view.value("loss_scale"))
            found.give("amp.scaler", name == "fp16" and not static, leaf)
            if name == "fp16" and not static:
                for key, knob, value in (
                    ("initial_loss_scale", "amp.init_scale", 2.0**32),
                    ("loss_scale_window", "amp.growth_interval", 1000),
                ):
                    if found.take(knob, view, key) is None:
                        found.give(knob, value, default=True)
            return
    leaf = view.first("fp16", "bf16")
    found.give("precision", "fp32", leaf, default=leaf is None)


def _accumulation(view: View, found: Found) -> None:
    """global batch = micro batch * data-parallel size * micro-steps."""
    total, micro = found.known("batch.global"), found.known("batch.per_device")
    replicas = view.number("data_parallel_size")
    if total and micro and replicas and total % (micro * replicas) == 0:
        leaf = found["batch.global"].leaf
        found.give("batch.accumulation", total / (micro * replicas), leaf, note="global / (micro * data parallel)")
