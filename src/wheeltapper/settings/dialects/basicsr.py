"""BasicSR: a YAML file read with PyYAML into plain dicts. A key nobody asks for is never noticed.

As of BasicSR 8d56e3a (2024-05). No gradient accumulation, no AMP, no clipping in its SRModel.
"""

from __future__ import annotations

from wheeltapper.settings.dialects._torch import check_optimizer, optimizer_knobs, scheduler_knobs
from wheeltapper.settings.dialects.schema import Layout, Policy, Problem, View, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "basicsr"
TITLE = "BasicSR"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("*.yml",),
    metrics=("train_*.log", "../../tb_logger/*/events.out.tfevents.*"),
    checkpoints=("models/net_*.pth", "training_states/*.state"),
    note="net_g_*.pth holds both `params` and `params_ema`",
)
FORMATS = ("BasicSR",)
KEYS = {
    **names("any", "name model_type datasets network_g network_d dist_params rank_zero_only auto_resume find_unused"),
    **table("""
    scale                        int    -  sr.scale
    num_gpu                      any
    manual_seed                  int    -  run.seed
    path.pretrain_network_g      str?   -  finetune.from
    path.resume_state            str?   -  resume.from
    path.strict_load_g           bool   True
    path.param_key_g             str?   'params'
    train.total_iter             int    -  run.total_steps steps
    train.warmup_iter            int    -1
    train.ema_decay              float  0
    train.optim_g                map
    train.optim_d                map
    train.scheduler              map
    train.net_d_iters            int    1
    train.net_d_init_iters       int    0
    val.val_freq                 float  -  eval.every steps
    val.save_img                 bool
    val.metrics                  map
    val.suffix                   str?
    logger.print_freq            int    -  log.every steps
    logger.save_checkpoint_freq  float  -  checkpoint.every steps
    logger.use_tb_logger         bool
    logger.wandb                 map
    """),
    **names("map", "pixel_opt perceptual_opt gan_opt ldl_opt cycle_opt", "train."),
}


def recognise(tree: ConfigTree) -> float:
    family = share(tree, ("datasets.train", "network_g", "train.optim_g", "train.total_iter", "logger"), 3)
    own = share(tree, ("model_type", "train.pixel_opt", "datasets.train.gt_size", "dist_params"), 2)
    # 0.8: a file that also has traiNNer's own keys is traiNNer's
    return 0.8 * family * own if tree.format == "yaml" else 0.0


def knobs(view: View, found: Found) -> None:
    optimizer_knobs(view, found, "train.optim_g")
    scheduler_knobs(view, found, "train.scheduler", "steps")
    found.take("optimizer.lr_d", view, "train.optim_d.lr")
    found.take("model.name", view, "network_g.type")
    found.take("batch.per_device", view, "datasets.train.batch_size_per_gpu")
    found.take("data.workers", view, "datasets.train.num_worker_per_gpu")
    found.take("data.enlarge", view, "datasets.train.dataset_enlarge_ratio")
    found.take("sr.patch", view, "datasets.train.gt_size")
    if isinstance(view.value("num_gpu"), int):
        found.take("world_size", view, "num_gpu")
    found.give("batch.accumulation", 1, default=True)
    warmup = view.number("train.warmup_iter")
    if warmup is not None:
        found.give("schedule.warmup", max(warmup, 0), view.leaf("train.warmup_iter"), unit="steps")
    leaf = view.leaf("train.ema_decay")
    decay = view.number("train.ema_decay") or 0.0
    found.give("ema.enabled", decay > 0, leaf, default=leaf is None)
    if decay > 0:
        found.give("ema.decay", decay, leaf)
        found.give("ema.every", 1, default=True)
    found.give("gan.enabled", view.has("train.gan_opt"), default=True)
    weights = {
        path[1]: leaf.value
        for path, leaf in view.index.items()
        if len(path) == 3 and path[0] == "train" and path[1].endswith("_opt") and path[2] == "loss_weight"
    }
    if weights:
        found.give("loss.weights", weights)


def check(view: View) -> list[Problem]:
    out = []
    for section in ("train.optim_g", "train.optim_d"):
        out += check_optimizer(view, section)
    return out
