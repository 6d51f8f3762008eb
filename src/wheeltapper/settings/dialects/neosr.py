"""neosr: TOML, read into plain dicts; unknown keys are never noticed. TOML has no 1e-6 trap.

As of neosr dc4e374 (2024-09): `total_iter` stands under [logger] and counts optimizer updates (the loop
multiplies it by `accumulate`); clipping is on by default; the loss scaler starts at 2**5.
"""

from __future__ import annotations

from wheeltapper.settings.dialects._torch import optimizer_knobs, scheduler_knobs
from wheeltapper.settings.dialects.schema import Layout, Policy, View, as_bool, names, share, table
from wheeltapper.settings.knobs import Found
from wheeltapper.settings.tree import ConfigTree

NAME = "neosr"
TITLE = "neosr"
UNKNOWN: Policy = "ignore"
REQUIRED: tuple[str, ...] = ()
LAYOUT = Layout(
    config=("*.toml",),
    metrics=("train_*.log", "../tb_logger/*/events.out.tfevents.*"),
    checkpoints=("models/net_*.pth", "training_states/*.state"),
)
FORMATS = ("neosr",)
KEYS = {
    **names("any", "name model_type datasets network_g network_d degradations dist_params"),
    **table("""
    scale                        int    -        sr.scale
    num_gpu                      any    'auto'
    manual_seed                  int    -        run.seed
    deterministic                bool   False    run.deterministic
    use_amp                      bool   False
    bfloat16                     bool   False
    fast_matmul                  bool   False
    compile                      bool   False    model.compile
    path.pretrain_network_g      str    -        finetune.from
    path.pretrain_network_d      str
    path.resume_state            str    -        resume.from
    path.strict_load_g           bool   True
    path.param_key_g             str
    path.print_network           bool   False
    logger.total_iter            int    1000000  run.total_steps steps
    logger.print_freq            int    100      log.every steps
    logger.save_checkpoint_freq  int    -        checkpoint.every steps
    logger.use_tb_logger         bool
    logger.save_tb_img           bool   False
    logger.wandb                 map
    val.val_freq                 int    -        eval.every steps
    val.save_img                 bool   True
    val.tile                     int    -1
    val.metrics                  map
    val.suffix                   str
    train.ema                    float  -1
    train.grad_clip              bool   True     clip.enabled
    train.warmup_iter            int    -1
    train.optim_g                map
    train.optim_d                map
    train.scheduler              map
    """),
    **names(
        "any",
        "sam sam_init eco eco_init eco_iters eco_schedule wavelet_guided wavelet_init match_lq_colors pixel_opt "
        "mssim_opt consistency_opt perceptual_opt dists_opt gan_opt ldl_opt ff_opt gw_opt total_iter",
        "train.",
    ),
}


def recognise(tree: ConfigTree) -> float:
    if tree.format != "toml":
        return 0.0
    return share(tree, ("datasets.train", "network_g", "train.optim_g", "logger.total_iter", "train.mssim_opt"), 3)


def knobs(view: View, found: Found) -> None:
    optimizer_knobs(view, found, "train.optim_g")
    scheduler_knobs(view, found, "train.scheduler", "steps")
    found.take("optimizer.lr_d", view, "train.optim_d.lr")
    found.take("model.name", view, "network_g.type")
    found.take("batch.per_device", view, "datasets.train.batch_size")
    found.take("sr.patch", view, "datasets.train.patch_size")
    if found.take("batch.accumulation", view, "datasets.train.accumulate") is None:
        found.give("batch.accumulation", 1, default=True)
    schedule_free = view.leaf("train.optim_g.schedule_free")
    if schedule_free is not None and as_bool(schedule_free.value) and "schedule.name" not in found:
        found.give("schedule.name", "schedule_free", schedule_free)
        found.take("schedule.warmup", view, "train.optim_g.warmup_steps", unit="steps")
    warmup = view.number("train.warmup_iter")
    if warmup is not None and warmup > 0:
        found.give("schedule.warmup", warmup, view.leaf("train.warmup_iter"), unit="steps")
    ema = view.number("train.ema")
    found.give("ema.enabled", ema is not None and ema > 0, view.leaf("train.ema"), default=ema is None)
    if ema is not None and ema > 0:
        found.give("ema.decay", ema, view.leaf("train.ema"))
    amp, bf16 = view.value("use_amp", False), view.value("bfloat16", False)
    leaf = view.leaf("use_amp")
    found.give("precision", "bf16" if amp and bf16 else "fp16" if amp else "fp32", leaf, default=leaf is None)
    if amp:  # enabled=use_amp, also with bfloat16
        found.give("amp.scaler", True, leaf)
        found.give("amp.init_scale", 32.0, default=True)
    if view.value("train.grad_clip", True):
        found.give("clip.norm", 1.0, view.leaf("train.grad_clip"), default=view.leaf("train.grad_clip") is None)
    found.give("gan.enabled", view.has("train.gan_opt"), default=True)
