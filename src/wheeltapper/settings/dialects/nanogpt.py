"""nanoGPT's train.py: module-level `key = value`, config files run over it, `--key=value` last.

As of nanoGPT 3adf61e (2025-11). The configurator refuses an unknown --key, and a value of another type.
`gradient_accumulation_steps` is the total over all processes: train.py divides it by the world size.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.generic import precision_name
from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_bool, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "nanogpt"
TITLE = "nanoGPT"
UNKNOWN: Policy = "ignore"  # a config file may define any name; only command-line keys are refused
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(config=("config/*.py",), metrics=("*.log", "*.txt"), checkpoints=("ckpt.pt",))
FORMATS = ("nanoGPT",)
KEYS = {
    **table("""
    eval_interval                int    2000    eval.every  steps
    log_interval                 int    1       log.every  steps
    batch_size                   int    12      batch.per_device
    block_size                   int    1024    seq_len
    gradient_accumulation_steps  int    40
    learning_rate                float  6e-4    optimizer.lr
    max_iters                    int    600000  run.total_steps  steps
    weight_decay                 float  0.1     optimizer.weight_decay
    beta1                        float  0.9
    beta2                        float  0.95
    grad_clip                    float  1.0
    decay_lr                     bool   True
    warmup_iters                 int    2000
    lr_decay_iters               int    600000
    min_lr                       float  6e-5
    dropout                      float  0.0     augment.dropout
    compile                      bool   True    model.compile
    dataset                      str    -       data.name
    init_from                    str    'scratch'
    dtype                        str    -
    """),
    **names(
        "any",
        "out_dir eval_iters eval_only always_save_checkpoint wandb_log wandb_project wandb_run_name n_layer n_head "
        "n_embd bias backend device seed",
    ),
}


def recognise(tree: ConfigTree) -> float:
    own = ("eval_iters", "always_save_checkpoint", "lr_decay_iters", "warmup_iters", "decay_lr", "n_embd", "block_size")
    return share(tree, own, 4)


def knobs(view: View, found: Found) -> None:
    one, two = view.first("beta1"), view.first("beta2")
    betas = [0.9 if one is None else one.value, 0.95 if two is None else two.value]
    found.give("optimizer.betas", betas, one or two, default=one is None and two is None)
    found.give("optimizer.name", "AdamW", default=True)
    found.give("run.seed", 1337, default=True)
    accumulation = view.first("gradient_accumulation_steps")
    total = 40 if accumulation is None else accumulation.value
    note = "summed over all processes: each does its share"
    found.give("batch.accumulation", total, accumulation, default=accumulation is None, note=note)
    clip = view.first("grad_clip")
    norm = 1.0 if clip is None else view.number("grad_clip")
    found.give("clip.enabled", bool(norm), clip, default=clip is None)
    if norm:
        found.give("clip.norm", norm, clip, default=clip is None)
    decay = view.first("decay_lr")
    if decay is not None and as_bool(decay.value) is False:
        found.give("schedule.name", "constant", decay)  # get_lr() is not called: no warm-up either
        found.give("schedule.warmup", 0, decay, unit="steps")
    else:
        found.give("schedule.name", "cosine", decay, default=True)
        for key, knob, value in (
            ("warmup_iters", "schedule.warmup", 2000),
            ("lr_decay_iters", "schedule.total", 600000),
            ("min_lr", "schedule.min_lr", 6e-5),
        ):
            leaf = view.first(key)
            found.give(knob, value if leaf is None else leaf.value, leaf, default=leaf is None)
    dtype = view.first("dtype")
    name = None if dtype is None else precision_name(dtype.value)
    if name is not None:
        found.give("precision", name, dtype)
        found.give("amp.scaler", name == "fp16", dtype)
    start = view.first("init_from")
    if start is not None and start.value == "resume":
        found.give("resume.auto", True, start)
    elif start is not None and str(start.value).startswith("gpt2"):
        found.give("finetune.from", start.value, start)
