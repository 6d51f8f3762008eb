"""SEDD (score entropy discrete diffusion) and its curriculum fork for proteins.

Upstream (louaaron, configs/config.yaml) is composed by Hydra, whose loader reads 1e-4 as a number; the fork
loads plain YAML. In the fork `step` counts micro-batches while the schedule steps per update; `lr_schedule`
is read by nobody.
"""

from __future__ import annotations

from wheeltapper.settings.dialects.schema import Layout, Policy, Problem, View, names, place_of, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "sedd"
TITLE = "SEDD"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("*.yaml", ".hydra/config.yaml"),
    metrics=("logs", "wandb/*/run-*.wandb"),
    checkpoints=("checkpoints/*.pth", "checkpoints-meta/checkpoint.pth"),
)
FORMATS = ("SEDD",)
KEYS = {
    **table("""
    ngpus                        int    -     world_size
    tokens                       int    -     vocab_size
    training.batch_size          int    -
    training.accum               int    1     batch.accumulation
    training.epochs              int    -     run.epochs  epochs
    training.n_iters             int    -     run.total_steps
    training.max_samples         int    -     data.train_size
    training.num_workers         int    -     data.workers
    training.seed                int    -     run.seed
    training.snapshot_freq       int    -     checkpoint.every
    training.log_freq            int    -     log.every
    training.eval_freq           int    -     eval.every
    training.ema                 float  -     ema.decay
    optim.lr                     float  -     optimizer.lr
    optim.optimizer              str    -     optimizer.name
    optim.weight_decay           float  -     optimizer.weight_decay
    optim.eps                    float  -     optimizer.eps
    optim.warmup                 int    -
    optim.grad_clip              float  -
    optim.beta1                  float
    optim.beta2                  float
    graph.type                   str    -     diffusion.graph
    noise.type                   str    -     diffusion.noise
    noise.sigma_min              float  -     diffusion.sigma_min
    noise.sigma_max              float  -     diffusion.sigma_max
    noise.eps                    float
    curriculum.enabled           bool   -     curriculum.enabled
    curriculum.preschool_time    int    -     curriculum.steps  micro_steps
    curriculum.difficulty_ramp   str    -     curriculum.ramp
    model.length                 int    -     seq_len
    model.dropout                float  -     augment.dropout
    eval.batch_size              int    -     eval.batch
    """),
    **names(
        "any", "work_dir model data graph sampling eval hydra lr_schedule memory monitoring defaults wandb devices"
    ),
    **names("any", "snapshot_freq_for_preemption weight snapshot_sampling", "training."),
}


def recognise(tree: ConfigTree) -> float:
    own = share(tree, ("graph.type", "noise.sigma_max", "training.n_iters", "sampling.predictor", "tokens"), 3)
    return own * share(tree, ("optim.lr", "training.batch_size"), 1)


def knobs(view: View, found: Found) -> None:
    betas = view.first("optim.beta1"), view.first("optim.beta2")
    if betas[0] is not None and betas[1] is not None:
        found.give("optimizer.betas", [betas[0].value, betas[1].value], betas[0])
    fork = view.has("curriculum") or view.has("lr_schedule") or view.has("training.epochs")
    unit = "micro_steps" if fork else "steps"
    for id_ in ("run.total_steps", "checkpoint.every", "log.every", "eval.every"):
        held = found.get(id_)
        if held is not None:
            found.give(id_, held.value, held.leaf, unit=unit)
    # The schedule steps with the optimizer, in both.
    found.take("schedule.warmup", view, "optim.warmup", unit="steps")
    found.give("schedule.name", "warmup-cosine" if fork else "warmup-constant", default=True)
    clip = view.number("optim.grad_clip")
    if clip is not None:
        found.give("clip.enabled", clip >= 0, view.leaf("optim.grad_clip"))  # upstream: negative switches it off
        if clip >= 0:
            found.give("clip.norm", clip, view.leaf("optim.grad_clip"))
    batch = view.first("training.batch_size")
    if batch is not None:  # upstream divides by ngpus * accum; the fork takes it per micro-batch
        found.give("batch.per_device" if fork else "batch.global", batch.value, batch)
    if fork:  # its loader drops the last batch: 9,500 sequences in batches of 32 are 296 steps
        found.give("data.drop_last", True, default=True)
    if "ema.decay" in found:
        found.give("ema.enabled", True, found["ema.decay"].leaf)
        found.give("ema.impl", "torch_ema", default=True)


def check(view: View) -> list[Problem]:
    leaf = next((leaf for path, leaf in view.index.items() if path[0] == "lr_schedule"), None)
    if leaf is None:
        return []
    text = "the `lr_schedule` section is read by neither SEDD nor its protein fork: the schedule comes from `optim`"
    return [Problem("unused-section", text, place_of(leaf), "suspected", "Set optim.warmup.", "lr_schedule")]
